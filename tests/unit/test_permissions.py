"""What the policies of a role allow."""

import json
from typing import Any

import pytest

from emulator.permissions import allows

START = "ec2:RunInstances"


def policy(*statements: dict[str, Any]) -> str:
    return json.dumps({"Statement": list(statements)})


def allow(*actions: str, **members: Any) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": list(actions), "Resource": "*", **members}


def deny(*actions: str, **members: Any) -> dict[str, Any]:
    return {**allow(*actions, **members), "Effect": "Deny"}


@pytest.mark.parametrize(
    ("documents", "allowed"),
    [
        ([], False),
        ([policy(allow("ec2:DescribeInstances"))], False),
        ([policy(allow(START))], True),
        ([policy(allow("EC2:runinstances"))], True),
        ([policy(allow("ec2:Run*"))], True),
        ([policy(allow("*"))], True),
        ([json.dumps({"Statement": {"Effect": "Allow", "Action": START, "Resource": "*"}})], True),
        ([policy({"Effect": "Allow", "NotAction": ["iam:*"], "Resource": "*"})], True),
        ([policy({"Effect": "Allow", "NotAction": "ec2:*", "Resource": "*"})], False),
        ([policy(allow(START)), policy(deny("ec2:*"))], False),
        ([policy(deny("ec2:*"), allow(START))], False),
        ([policy(allow(START), deny("s3:*"))], True),
        ([policy(allow(START), deny(START, Resource=["arn:aws:ec2:*:*:instance/i-1"]))], True),
        ([policy(allow(START), deny(START, Condition={"Bool": {"aws:SecureTransport": "false"}}))], True),
        ([policy(allow(START, Condition={"StringEquals": {"a": "b"}}))], True),
    ],
)
def test_an_action_is_allowed_by_some_policy_and_denied_by_none(documents: list[str], allowed: bool) -> None:
    assert allows(documents, [START]) is allowed


def test_all_of_the_actions_have_to_be_allowed_by_whichever_policy() -> None:
    documents = [policy(allow("ec2:*")), policy(allow("ecs:RunTask"))]
    assert allows(documents, [START, "ecs:RunTask"])
    assert not allows(documents, [START, "ecs:RunTask", "iam:PassRole"])
