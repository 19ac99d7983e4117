"""Every input that is served, changed by the real engine: seen by boto3, and then a refresh without changes.

The values, and where boto3 finds them, are the table of tests/emulator/plugin/test_plugin_inputs.py. One stack has a
resource of each type, and one update changes as many inputs of each as go together.
"""

import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jmespath  # type: ignore[import-untyped]  # it has no stubs
import pytest

from emulator.home import CHECKOUT, Home
from emulator.plugin.functions import FUNCTIONS
from emulator.plugin.protocol import Plugin
from emulator.plugin.resources import TYPES
from emulator.project import Project
from tests.emulator.plugin.conftest import DESCRIPTIONS, Engine, World
from tests.emulator.plugin.test_plugin_inputs import (
    BASES,
    ONE_VALUE,
    OTHER_VALUES,
    REMEMBERED,
    REPLACED,
    TABLE,
    Change,
    changed,
)

Values = dict[str, Any]
Programs = dict[str, Values]
Row = tuple[str, str]

PROGRAM = """
import json
import pathlib
import pulumi
for item in json.loads(pathlib.Path("resources.json").read_text()):
    pulumi.CustomResource(item["type"], item["name"], item["inputs"])
"""

# What AWS never tells, and so boto3 cannot read back: the engine sets it, and a refresh leaves it.
UNSEEN: dict[str, Any] = {"recoveryWindowInDays": 7}  # the others are flags

NOT_CHANGED: dict[Row, str] = {
    ("ComputeEnvironment", "serviceRole"): "AWS refuses to change it",
    ("JobQueue", "computeEnvironmentOrders.order"): "the emulated Batch numbers them itself",
    ("JobQueue", "jobStateTimeLimitActions.action"): "AWS has no other value",
    ("JobQueue", "jobStateTimeLimitActions.state"): "AWS has no other value",
    ("Table", "attributes.name"): "only a key may use another one, and that is another table",
    ("Table", "attributes.type"): "the same",
    ("Table", "billingMode"): "the stand-in serves no other value",
}
# The first update makes a second version, so that there are two to choose from.
VERSIONS: dict[Row, Change] = {
    ("aws:ec2/launchTemplate:LaunchTemplate", "updateDefaultVersion"): Change(True, "DefaultVersionNumber", 2),
    ("aws:ec2/launchTemplate:LaunchTemplate", "defaultVersion"): Change(1, "DefaultVersionNumber"),
}

# Batch refuses to scale down by hand, so the 2 vCPUs that come along with this come before the 4 of `desiredVcpus`.
FIRST = "computeResources.minVcpus"

# What does not go together in one update, whatever their values.
APART = (
    {"name", "namePrefix"},
    {"ingress.securityGroups", "ingress.self"},
    {"egress.securityGroups", "egress.self"},
    {"updateDefaultVersion", "defaultVersion"},
)


def short(type_name: str) -> str:
    return type_name.rpartition(":")[2]


def rows(kind: str) -> list[Row]:
    """Return (type, input) of every row of the table of a kind."""
    return [(type_name, path) for type_name, inputs in TABLE.items() for path in inputs if inputs[path] == kind]


def rounds(wanted: dict[Row, Values]) -> list[list[Row]]:
    """Share out inputs, given what each sets, so that those of a round contradict each other nowhere."""
    shared: list[list[Row]] = []
    for row, sets in wanted.items():
        for made in shared:
            if all(other[0] != row[0] or _together(row[1], sets, other[1], wanted[other]) for other in made):
                made.append(row)
                break
        else:
            shared.append([row])
    return shared


def _together(path: str, sets: Values, other_path: str, other_sets: Values) -> bool:
    contradiction = any(sets[name] != other_sets[name] for name in sets.keys() & other_sets.keys())
    return not contradiction and not any({path, other_path} <= pair for pair in APART)


def with_changes(programs: Programs, made: list[Row], wanted: dict[Row, Values]) -> Programs:
    result = dict(programs)
    for row in made:
        for path, value in wanted[row].items():
            result[row[0]] = changed(result[row[0]], path, value)
    return result


class Deployed(Project):
    """A stack with one resource of each type."""

    def write(self, programs: Programs) -> None:
        # Lower case, because names come from it, and a bucket or a repository may have no other.
        resources = [{"type": name, "name": short(name).lower(), "inputs": inputs} for name, inputs in programs.items()]
        (self.folder / "resources.json").write_text(json.dumps(resources))

    def deploy(self, programs: Programs) -> set[tuple[str, str]]:
        """Run `up`, check that nothing is left to do, and return (operation, type) of what it did."""
        self.write(programs)
        done = self.pulumi("up", "--yes", "--skip-preview", "--json", capture=True, check=False)
        events = [json.loads(line) for line in done.stdout.splitlines()]
        said = [event["diagnosticEvent"] for event in events if "diagnosticEvent" in event]
        assert done.returncode == 0, [one["message"] for one in said if one["severity"] == "error"]
        steps = [event["resOutputsEvent"]["metadata"] for event in events if "resOutputsEvent" in event]
        return {(step["op"], step["type"]) for step in steps if step["type"] in TABLE and step["op"] != "same"}

    def nothing_differs(self) -> None:
        done = self.pulumi("preview", "--refresh", "--expect-no-changes", "--diff", capture=True, check=False)
        assert done.returncode == 0, done.stdout[-5000:] + done.stderr

    def steps(self, programs: Programs) -> dict[str, Values]:
        """Return the steps that a preview shows, by type."""
        self.write(programs)
        steps = json.loads(self.pulumi("preview", "--json", capture=True).stdout)["steps"]
        return {step["urn"].split("::")[2]: step for step in steps if step["op"] in ("replace", "update")}

    def ids(self) -> dict[str, str]:
        exported = json.loads(self.pulumi("stack", "export", capture=True).stdout)["deployment"]["resources"]
        return {resource["type"]: resource["id"] for resource in exported if resource["type"] in TABLE}


@pytest.fixture(scope="module")
def home(make_account: Callable[[Path], Home], tmp_path_factory: pytest.TempPathFactory) -> Home:
    return make_account(tmp_path_factory.mktemp("inputs"))


@pytest.fixture(scope="module")
def world(home: Home, account_of: Callable[[Home], Any]) -> Iterator[World]:
    """What the programs refer to, made by the plugin's own methods in this process."""
    plugin = Plugin("7.0.0", TYPES, FUNCTIONS, home.running().url, str(home.folder / "world.log"))
    names = ("Configure", "Check", "Create", "Delete")
    stub = SimpleNamespace(**{name: _called(getattr(plugin, name)) for name in names})
    engine = Engine(stub, plugin)
    engine.configure(region="us-east-1", accessKey="emulator", secretKey="emulator")
    made = World(engine, cache(account_of(home).client))
    yield made
    made.close()


def _called(method: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    return lambda request: method(request, SimpleNamespace(abort=lambda _, reason: pytest.fail(reason)))


@pytest.fixture(scope="module")
def bases(world: World) -> Programs:
    return {type_name: BASES[short(type_name)](world) for type_name in TABLE}


@pytest.fixture(scope="module")
def deployed(home: Home, bases: Programs) -> Iterator[Deployed]:
    folder = home.folder.parent / "project"
    folder.mkdir()
    project = Deployed(folder, home)
    (folder / "Pulumi.yaml").write_text("name: inputs\nruntime: {name: python, options: {virtualenv: .venv}}\n")
    (folder / "Pulumi.dev.yaml").write_text("config: {aws:region: us-east-1}\n")
    (folder / "__main__.py").write_text(PROGRAM)
    (folder / ".venv").symlink_to(CHECKOUT / ".venv")
    project.init()
    assert project.deploy(bases) == {("create", type_name) for type_name in TABLE}
    project.nothing_differs()
    yield project
    project.destroy()


def test_every_row_of_the_table_is_changed_or_named_here() -> None:
    kept = {(short(type_name), path) for type_name, path in rows(ONE_VALUE)}
    assert kept - {("LaunchTemplate", "defaultVersion")} == NOT_CHANGED.keys()


def test_another_value_takes_another_resource(deployed: Deployed, bases: Programs) -> None:
    wanted = {row: {row[1]: OTHER_VALUES.get(row[1], "other")} for row in rows(REPLACED)}
    for made in rounds(wanted):
        steps = deployed.steps(with_changes(bases, made, wanted))
        for type_name, path in made:
            step = steps[type_name]
            assert step["op"] == "replace", (type_name, path)
            assert path.partition(".")[0] in step["replaceReasons"], (type_name, path)
            assert step["detailedDiff"][path]["kind"].endswith("-replace"), (type_name, path)


def test_changes_reach_the_account_and_then_nothing_differs(deployed: Deployed, bases: Programs, world: World) -> None:
    changes: dict[Row, Change] = {}
    for type_name, inputs in TABLE.items():
        for path, entry in inputs.items():
            change = entry(world) if callable(entry) else entry
            if isinstance(change, Change):
                changes[type_name, path] = change
    changes |= VERSIONS
    ids = deployed.ids()
    group = "aws:ec2/securityGroup:SecurityGroup"
    for path, where in (("ingress.self", "IpPermissions"), ("egress.self", "IpPermissionsEgress")):
        # The update before has made it another group, so that their number says nothing.
        changes[group, path] = Change(True, f"{where}[0].UserIdGroupPairs[].GroupId", [ids[group]])
    ordered = sorted(changes.items(), key=lambda item: item[0][1] != FIRST)
    wanted = {row: {row[1]: change.value, **(change.along or {})} for row, change in ordered}
    wanted |= {row: {row[1]: UNSEEN.get(row[1], True)} for row in rows(REMEMBERED)}

    found: Values = {}
    for made in rounds(wanted):
        before = found or described(world, ids)
        done = deployed.deploy(with_changes(bases, made, wanted))
        assert {operation for operation, _ in done} == {"update"}
        assert {type_name for type_name, _ in made} <= {type_name for _, type_name in done}
        found = described(world, ids)
        for row in made:
            if (made_here := changes.get(row)) is not None:
                expected = made_here.value if made_here.seen is None else made_here.seen
                assert jmespath.search(made_here.where, before[row[0]]) != expected, row
                assert jmespath.search(made_here.where, found[row[0]]) == expected, row
        deployed.nothing_differs()
        # What the account cannot go back from stays.
        bases = with_changes(bases, [row for row in made if row in changes and changes[row].stays], wanted)
    assert {operation for operation, _ in deployed.deploy(bases)} == {"update"}
    deployed.nothing_differs()


def described(world: World, ids: dict[str, str]) -> Values:
    """Return what boto3 says of the resource of each type that boto3 can ask for."""
    return {name: world.describe(name, found) for name, found in ids.items() if short(name) in DESCRIPTIONS}
