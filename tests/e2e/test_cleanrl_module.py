"""Pulumi.cleanrl.yaml is CleanRL's Terraform module, argument by argument, as the engine's preview shows it.

The facts are from vwxyzjn/cleanrl, in our words, each with file, line and commit.
"""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from emulator.home import CHECKOUT, Home
from emulator.project import Project

QUEUES = "cloud/modules/cleanrl/main.tf", "49d63efea52b8c5735f6bcb8edd68454ffaa80c2"
SETUP = "cloud/modules/cleanrl/setups.tf", "e98726da159796163e8be7a80f0c9421bcfd6d49"
VARIABLES = "cloud/modules/cleanrl/variables.tf", "44483a0bea0b00953304d5b93bcb136766b909b6"
ROOT = "cloud/main.tf", "49d63efea52b8c5735f6bcb8edd68454ffaa80c2"

# ROOT, lines 21 to 27. There a1.medium is in the place of c5a.large, which the repository's newest cloud/main.tf has;
# AWS's current images do not run on it.
TYPES = ["g4dn.4xlarge", "g4dn.xlarge", "r5ad.large", "c5a.large", "c6g.medium", "m6gd.medium"]
MANAGED = "arn:aws:iam::aws:policy/service-role"


class Fact(NamedTuple):
    """One argument of one resource of the module.

    Attributes:
        source: File and commit.
        line: Its line there.
        kind: Our resource's type.
        name: Our resource's logical name; for queues and environments what CleanRL's name ends in.
        argument: Path of the argument in our inputs.
        value: Its value.
    """

    source: tuple[str, str]
    line: int
    kind: str
    name: str
    argument: str
    value: Any


ENVIRONMENT, QUEUE = "aws:batch/computeEnvironment:ComputeEnvironment", "aws:batch/jobQueue:JobQueue"
FACTS = [
    Fact(QUEUES, 23, ENVIRONMENT, "", "type", "MANAGED"),
    Fact(QUEUES, 14, ENVIRONMENT, "", "computeResources.minVcpus", 0),
    Fact(VARIABLES, 4, ENVIRONMENT, "", "computeResources.maxVcpus", 2000),
    Fact(QUEUES, 19, ENVIRONMENT, "", "computeResources.type", "EC2"),
    Fact(VARIABLES, 10, ENVIRONMENT, "", "computeResources.allocationStrategy", "BEST_FIT"),
    Fact(QUEUES, 61, ENVIRONMENT, "-spot", "type", "MANAGED"),
    Fact(QUEUES, 50, ENVIRONMENT, "-spot", "computeResources.minVcpus", 0),
    Fact(VARIABLES, 4, ENVIRONMENT, "-spot", "computeResources.maxVcpus", 2000),
    Fact(QUEUES, 55, ENVIRONMENT, "-spot", "computeResources.type", "SPOT"),
    Fact(VARIABLES, 16, ENVIRONMENT, "-spot", "computeResources.allocationStrategy", "BEST_FIT"),
    Fact(ROOT, 19, ENVIRONMENT, "-spot", "computeResources.bidPercentage", 50),
    Fact(QUEUES, 30, QUEUE, "", "state", "ENABLED"),
    Fact(QUEUES, 31, QUEUE, "", "priority", 100),
    Fact(QUEUES, 68, QUEUE, "-spot", "state", "ENABLED"),
    Fact(QUEUES, 69, QUEUE, "-spot", "priority", 100),
    Fact(SETUP, 21, "aws:iam/rolePolicyAttachment:RolePolicyAttachment", "rl-batch-cleanrl-instance", "policyArn",
         f"{MANAGED}/AmazonEC2ContainerServiceforEC2Role"),
    Fact(SETUP, 50, "aws:iam/rolePolicyAttachment:RolePolicyAttachment", "rl-batch-cleanrl-batch", "policyArn",
         f"{MANAGED}/AWSBatchServiceRole"),
    Fact(SETUP, 74, "aws:iam/rolePolicyAttachment:RolePolicyAttachment", "rl-batch-cleanrl-spot-fleet", "policyArn",
         f"{MANAGED}/AmazonEC2SpotFleetTaggingRole"),
    Fact(SETUP, 80, "aws:ec2/securityGroup:SecurityGroup", "rl-batch-cleanrl-hosts", "egress",
         [{"fromPort": 0, "toPort": 0, "protocol": "-1", "cidrBlocks": ["0.0.0.0/0"]}]),
]  # fmt: skip
TRUST = [
    (SETUP, 11, "instance", "ec2.amazonaws.com"),
    (SETUP, 40, "batch", "batch.amazonaws.com"),
    (SETUP, 64, "spot-fleet", "spotfleet.amazonaws.com"),
]


@pytest.fixture(scope="module")
def project(make_account: Callable[[Path], Home], tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A stack `cleanrl` that is not deployed."""
    folder = tmp_path_factory.mktemp("cleanrl")
    made = Project.copy(folder / "project", make_account(folder))
    made.init()
    shutil.copy(CHECKOUT / "Pulumi.cleanrl.yaml", made.folder)
    made.pulumi("stack", "init", "cleanrl", capture=True)
    return made


@pytest.fixture(scope="module")
def planned(project: Project) -> dict[tuple[str, str], Any]:
    """What its first preview would create, by type and logical name."""
    shown = project.pulumi("preview", "--stack", "cleanrl", "--json", capture=True)
    states = [step["newState"] for step in json.loads(shown.stdout)["steps"]]
    return {(state["type"], state["urn"].rpartition("::")[2]): state for state in states}


def names(fact: Fact) -> list[str]:
    """Return the logical names of the resources that a fact is about."""
    if fact.kind not in (ENVIRONMENT, QUEUE):
        return [fact.name]
    prefix = "rl-batch-cleanrl-" if fact.kind == ENVIRONMENT else ""
    return [f"{prefix}{each.replace('.', '-')}{fact.name}" for each in TYPES]


def found(inputs: Any, path: str) -> Any:
    for step in path.split("."):
        inputs = inputs[step]
    return inputs


@pytest.mark.parametrize(
    "fact", FACTS, ids=[f"{each.kind.rpartition(':')[2]}{each.name}.{each.argument}" for each in FACTS]
)
def test_an_argument_is_cleanrls(planned: dict[tuple[str, str], Any], fact: Fact) -> None:
    for name in names(fact):
        assert found(planned[fact.kind, name]["inputs"], fact.argument) == fact.value, (name, fact.source, fact.line)


@pytest.mark.parametrize(("source", "line", "role", "service"), TRUST)
def test_a_role_is_there_and_trusts_the_same_service(
    planned: dict[tuple[str, str], Any], source: tuple[str, str], line: int, role: str, service: str
) -> None:
    """With the conditions that AWS has documented since."""
    document = json.loads(planned["aws:iam/role:Role", f"rl-batch-cleanrl-{role}"]["inputs"]["assumeRolePolicy"])
    (statement,) = document["Statement"]
    assert (statement["Action"], statement["Principal"]) == ("sts:AssumeRole", {"Service": service}), (source, line)


def test_the_queues_are_cleanrls_in_name_and_number(planned: dict[tuple[str, str], Any]) -> None:
    """QUEUES, lines 7, 29, 43 and 67: a type's name with hyphens, for Spot with `-spot`."""
    wanted = {each.replace(".", "-") + suffix for each in TYPES for suffix in ("", "-spot")}
    assert {state["inputs"]["name"] for (kind, _), state in planned.items() if kind == QUEUE} == wanted
    environments = {name.removeprefix("rl-batch-cleanrl-") for kind, name in planned if kind == ENVIRONMENT}
    assert environments == wanted


def test_an_environment_is_of_one_type_with_the_roles_group_and_subnets_of_the_module(
    planned: dict[tuple[str, str], Any],
) -> None:
    """QUEUES, lines 9 to 24 and 45 to 62."""
    for instance_type in TYPES:
        name = f"rl-batch-cleanrl-{instance_type.replace('.', '-')}"
        for state in (planned[ENVIRONMENT, name], planned[ENVIRONMENT, f"{name}-spot"]):
            resources = state["inputs"]["computeResources"]
            assert resources["instanceTypes"] == [instance_type]
            assert resources["subnets"]
            refers_to = {urn.rpartition("::")[2] for urn in state["propertyDependencies"]["computeResources"]}
            assert {"rl-batch-cleanrl-instance", "rl-batch-cleanrl-hosts"} <= refers_to
            assert ("rl-batch-cleanrl-spot-fleet" in refers_to) == (resources["type"] == "SPOT")
            role = [urn.rpartition("::")[2] for urn in state["propertyDependencies"]["serviceRole"]]
            assert role == ["rl-batch-cleanrl-batch"]
            attachment = "RolePolicyAttachment::rl-batch-cleanrl-batch"
            assert any(urn.endswith(attachment) for urn in state["dependencies"]), "depends_on, lines 24 and 62"


def test_a_queue_is_on_its_own_environment(planned: dict[tuple[str, str], Any]) -> None:
    """QUEUES, lines 32 to 34 and 70 to 72."""
    for (kind, name), state in planned.items():
        if kind == QUEUE:
            (environment,) = state["propertyDependencies"]["computeEnvironmentOrders"]
            assert environment.endswith(f"ComputeEnvironment::rl-batch-cleanrl-{name}")


def test_the_a1_medium_of_cleanrls_own_file_is_refused_with_its_reason_and_its_successors(project: Project) -> None:
    """ROOT, line 26."""
    stack = yaml.safe_load((CHECKOUT / "Pulumi.cleanrl.yaml").read_text())
    stack["config"]["rl-batch:instanceTypes"] = ["g4dn.xlarge", "a1.medium"]
    (project.folder / "a1.yaml").write_text(yaml.safe_dump(stack))
    refused = project.pulumi("preview", "--stack", "cleanrl", "--config-file", "a1.yaml", capture=True, check=False)
    assert refused.returncode != 0
    said = "a1.medium cannot run the Amazon Linux 2023 image of AWS Batch; take c6g, c7g or c8g instead"
    assert said in refused.stdout
    assert "Traceback" not in refused.stdout + refused.stderr
