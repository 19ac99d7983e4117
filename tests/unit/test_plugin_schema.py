"""Comparing and projecting inputs by their declarations alone."""

import json
import os
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from emulator.plugin.install import install
from emulator.plugin.naming import automatic_name
from emulator.plugin.resource import ResourceType
from emulator.plugin.schema import UNKNOWN, Input, Values, differences, failures, observed, with_defaults

FIELDS = {
    "set": Input(unordered=True),
    "list": Input(),
    "policy": Input(document=True),
    "flag": Input(default=False, remembered=True),
    "filled": Input(computed=True),
    "fixed": Input(force_new=True),
    "tags": Input(),
    "block": Input(force_new=True, fields={"a": Input(), "b": Input(computed=True), "c": Input(default=30)}),
    "rules": Input(unordered=True, fields={"port": Input(), "cidrs": Input(unordered=True)}),
    "orders": Input(fields={"of": Input(), "order": Input()}),
}


def found(old: Values, new: Values) -> list[tuple[str, str, bool]]:
    return [(each.path, each.kind, each.force_new) for each in differences(FIELDS, old, new)]


@pytest.mark.parametrize(
    ("name", "one", "other"),
    [
        ("set", ["a", "b"], ["b", "a"]),
        ("policy", '{"a": 1, "b": [2]}', '{"b":[2],"a":1}'),
        ("tags", {}, None),
        ("list", [], None),
        ("fixed", "", None),
        ("flag", False, None),
        ("rules", [{"port": 1, "cidrs": ["a", "b"]}, {"port": 2}], [{"port": 2}, {"port": 1, "cidrs": ["b", "a"]}]),
        ("block", {"a": "", "c": 1}, {"c": 1}),
    ],
)
def test_what_means_the_same_is_no_difference(name: str, one: Any, other: Any) -> None:
    def values(value: Any) -> Values:
        return {} if value is None else {name: value}

    assert found(values(one), values(other)) == found(values(other), values(one)) == []
    assert observed(FIELDS, values(one), values(other)) == values(one)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({"list": ["a", "b"]}, {"list": ["b", "a"]}, [("list", "update", False)]),
        ({"fixed": "a"}, {"fixed": UNKNOWN}, [("fixed", "update", True)]),
        ({"tags": {"a": "1"}}, {"tags": {"b.c": "2"}}, [("tags.a", "delete", False), ('tags["b.c"]', "add", False)]),
        ({"block": {"a": "1"}}, {"block": {"a": "2"}}, [("block.a", "update", False)]),
        ({"block": {"a": "1"}}, {}, [("block", "delete", True)]),
        ({}, {"block": {"a": "1"}}, [("block", "add", True)]),
        ({"filled": "x", "block": {"a": "1", "b": "x"}}, {"block": {"a": "1"}}, []),
        (
            {"orders": [{"of": "a", "order": 1}]},
            {"orders": [{"of": "b", "order": 1}]},
            [("orders[0].of", "update", False)],
        ),
        (
            {"orders": [{"of": "a", "order": 1}]},
            {"orders": [{"of": "a", "order": 1}, {"of": "b", "order": 2}]},
            [("orders", "update", False)],
        ),
    ],
)
def test_differences_have_paths_and_kinds(old: Values, new: Values, expected: list[tuple[str, str, bool]]) -> None:
    assert found(old, new) == expected


def test_only_what_the_program_says_is_observed() -> None:
    live = {"filled": "x", "block": {"a": "1", "b": "filled in"}, "set": ["y"], "tags": {"a": "1"}}
    inputs = {"block": {"a": "1"}, "flag": True, "tags": {"a": "1"}}
    assert observed(FIELDS, inputs, live) == inputs


def test_drift_is_observed_deep_down() -> None:
    inputs = {
        "block": {"a": "1", "c": 30},
        "fixed": "gone",
        "rules": [{"port": 2, "cidrs": ["b", "a"]}, {"port": 1}],
        "tags": {"a": "1"},
    }
    live = {
        "block": {"a": "2", "b": "x", "c": 30},
        "rules": [{"port": 3}, {"port": 2, "cidrs": ["a", "b"]}],
        "tags": {"a": "1", "theirs": "2"},
    }
    assert observed(FIELDS, inputs, live) == {
        "block": {"a": "2", "c": 30},
        "rules": [{"port": 2, "cidrs": ["b", "a"]}, {"port": 3}],
        "tags": {"a": "1", "theirs": "2"},
    }


def test_defaults_fill_blocks_that_are_there() -> None:
    assert with_defaults(FIELDS, {"block": {"a": "1"}}) == {"block": {"a": "1", "c": 30}, "flag": False}
    assert with_defaults(FIELDS, {"block": UNKNOWN})["block"] == UNKNOWN


def test_failures_name_the_property() -> None:
    fields = {
        "one": Input(required=True),
        "mode": Input(choices=("ON",)),
        "blocks": Input(fields={"two": Input(required=True)}),
    }
    values = {"mode": "OFF", "blocks": [{"two": 2}, {"three": 3}], "four": 4}
    assert sorted(name for name, _ in failures(fields, values)) == ["blocks.three", "blocks.two", "four", "mode", "one"]
    assert list(failures(fields, {"one": UNKNOWN, "mode": UNKNOWN, "blocks": UNKNOWN})) == []


class Short(ResourceType):
    name_length = 12


@pytest.mark.parametrize(
    ("prefix", "kept", "expected"),
    [
        (None, None, "a-lon"),
        ("p", None, "p"),
        ("p", "p1234567", "p1234567"),
        ("q", "p1234567", "q"),
    ],
)
def test_automatic_names_fit_and_are_kept(prefix: str | None, kept: str | None, expected: str) -> None:
    name = automatic_name(Short(), "urn:pulumi:dev::rl::aws:x/y:Y::a-long-name", prefix, kept, b"seed")
    assert name.startswith(expected)
    assert len(name) == max(len(expected), min(12, len(prefix or "a-lon") + 7))
    if kept != name:
        again = automatic_name(Short(), "urn:pulumi:dev::rl::aws:x/y:Y::a-long-name", prefix, kept, b"seed")
        other = automatic_name(Short(), "urn:pulumi:dev::rl::aws:x/y:Y::a-long-name", prefix, kept, b"other")
        assert (again == name, other == name) == (True, False)


def test_the_plugin_is_where_the_engine_looks_for_it(tmp_path: Path) -> None:
    install(tmp_path / "pulumi home")
    install(tmp_path / "pulumi home")
    script = tmp_path / "pulumi home/plugins" / f"resource-aws-v{metadata.version('pulumi-aws')}/pulumi-resource-aws"
    assert os.access(script, os.X_OK)
    assert json.dumps(str(tmp_path / "plugin.log"))[1:-1] in script.read_text()
