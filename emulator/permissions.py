"""What the policies of a role allow. Pure.

Source: "Policy evaluation logic", IAM user guide. Resources and conditions are not looked at: a statement that allows
an action on some resource, or sometimes, counts as one that allows it, and one that denies it there counts as none.
"""

import json
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any


def allows(documents: Iterable[str], actions: Iterable[str]) -> bool:
    """Whether policies, as JSON, together allow all of these actions (`ec2:RunInstances`): allowed, nowhere denied."""
    statements = [statement for document in documents for statement in _listed(json.loads(document)["Statement"])]
    granting = [statement for statement in statements if statement["Effect"] == "Allow"]
    denying = [statement for statement in statements if statement["Effect"] == "Deny" and _everywhere(statement)]
    return all(
        any(_names(statement, action) for statement in granting)
        and not any(_names(statement, action) for statement in denying)
        for action in actions
    )


def _everywhere(statement: Mapping[str, Any]) -> bool:
    return "*" in _listed(statement.get("Resource", ())) and "Condition" not in statement


def _names(statement: Mapping[str, Any], action: str) -> bool:
    """Whether a statement is about an action; letters of either case are the same, `*` and `?` stand for others."""
    patterns = _listed(statement.get("Action", statement.get("NotAction", ())))
    found = any(fnmatchcase(action.lower(), pattern.lower()) for pattern in patterns)
    return found == ("Action" in statement)


def _listed(one_or_more: Any) -> list[Any]:
    return [one_or_more] if isinstance(one_or_more, str | dict) else list(one_or_more)
