"""How a state is repaired after an update that was killed."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from infra.recover import IDS, LOOK_UPS, elsewhere, repaired

ROLE = "aws:iam/role:Role"
QUEUE = "aws:batch/jobQueue:JobQueue"


def resource(name: str, kind: str = ROLE, **more: Any) -> dict[str, Any]:
    return {"urn": f"urn:pulumi:dev::rl-batch::{kind}::{name}", "type": kind, "inputs": {"name": name}, **more}


def pending(begun: dict[str, Any], operation: str = "creating") -> dict[str, Any]:
    return {"resource": begun, "type": operation}


def id_of(_: str, inputs: Mapping[str, Any]) -> str | None:
    return None if inputs["name"] == "gone" else f"id-of-{inputs['name']}"


def test_what_was_being_created_is_adopted_by_its_name_after_all_that_it_depends_on() -> None:
    before = {
        "resources": [resource("a", id="a")],
        "pending_operations": [pending(resource("b", dependencies=["a"])), pending(resource("gone"))],
        "metadata": {"kept": True},
    }
    assert repaired(before, id_of) == {
        "resources": [resource("a", id="a"), resource("b", dependencies=["a"], id="id-of-b")],
        "pending_operations": [],
        "metadata": {"kept": True},
    }


def test_a_replacement_that_was_being_created_goes_since_nothing_uses_it_yet() -> None:
    """The next update makes another one; the old resource is untouched until that is in use."""
    before = {"resources": [resource("a", id="old")], "pending_operations": [pending(resource("a"))]}
    assert repaired(before, id_of)["resources"] == [resource("a", id="old"), resource("a", id="id-of-a", delete=True)]


@pytest.mark.parametrize("old", [{"id": "old", "pendingReplacement": True}, {"id": "id-of-a"}])
def test_what_takes_the_place_of_a_resource_that_is_gone_or_is_the_same_is_kept(old: dict[str, Any]) -> None:
    before = {"resources": [resource("a", **old)], "pending_operations": [pending(resource("a"))]}
    assert repaired(before, id_of)["resources"] == [resource("a", id="id-of-a")]


@pytest.mark.parametrize(
    "operation",
    [
        pending(resource("a", id="a"), "deleting"),
        pending(resource("a", id="a"), "updating"),
        pending(resource("p", "pulumi:providers:aws")),
        pending(resource("c", "rl-batch:infra:BatchRoles")),
    ],
)
def test_what_the_engine_copes_with_by_itself_is_only_not_pending_any_more(operation: dict[str, Any]) -> None:
    before = {"resources": [resource("a", id="a")], "pending_operations": [operation]}
    assert repaired(before, id_of) == {"resources": [resource("a", id="a")], "pending_operations": []}


@pytest.mark.parametrize(
    ("arn", "problem"),
    [
        ("arn:aws:batch:us-east-1:123456789012:job-queue/a", ""),
        ("arn:aws:iam::123456789012:role/a", ""),
        ("arn:aws:s3:::a", ""),
        (None, ""),
        ("arn:aws:iam::210987654321:role/a", "is of account 210987654321, and the AWS credentials"),
        ("arn:aws:batch:eu-west-1:123456789012:job-queue/a", "is of region eu-west-1, and the AWS credentials"),
    ],
)
def test_a_state_of_another_account_or_region_is_told(arn: str | None, problem: str) -> None:
    """There, nothing that was begun would be found, and the refresh would take out what does exist."""
    state = {"resources": [resource("a", outputs={"arn": arn} if arn else {})]}
    found = elsewhere(state, {"account": "123456789012", "partition": "aws", "region": "us-east-1"})
    assert (problem in found) if found else not problem


def test_every_type_of_the_program_can_be_found(deploy: Callable[..., Any]) -> None:
    """A type that is added to the program needs its line here, or an update killed at its creation orphans it."""
    everything = deploy(
        serviceRole="dedicated",
        spotAllocationStrategy="BEST_FIT",
        fairShare=True,
        artifactsBucket=True,
        imageRepository=True,
        jobPolicyArns=["arn:aws:iam::aws:policy/ReadOnlyAccess"],
    )
    registered = {each.type for each in everything.resources if each.type.startswith("aws:")}
    assert registered == IDS.keys() | LOOK_UPS.keys()
