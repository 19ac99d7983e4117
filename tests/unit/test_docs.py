"""The documentation that is made from the code, or describes it key by key."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tools.cli_reference import PAGE, reference

ROOT = Path(__file__).parents[2]
SCHEMAS = sorted((ROOT / "docs" / "schemas").glob("*.json"))


def objects(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield every part of a schema that lists properties."""
    if isinstance(schema, dict):
        if "properties" in schema:
            yield schema
        for part in schema.values():
            yield from objects(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from objects(part)


def test_every_json_document_has_a_schema() -> None:
    sources = (path.read_text() for path in (ROOT / "submitter").rglob("*.py"))
    kinds = {kind for text in sources for kind in re.findall(r'document\("([a-z-]+)"', text)}
    assert kinds == {path.stem for path in SCHEMAS}


@pytest.mark.parametrize("path", SCHEMAS, ids=lambda path: path.stem)
def test_a_schema_names_every_key_and_allows_no_other(path: Path) -> None:
    schema = json.loads(path.read_text())
    Draft202012Validator.check_schema(schema)
    assert schema["properties"]["schema"] == {"const": f"rl-batch/{path.stem}/v1"}
    for part in objects(schema):
        assert part["additionalProperties"] is False
        optional = {"runs"} if path.stem == "status" else set()
        assert set(part["properties"]) - optional <= set(part["required"]) <= set(part["properties"])


def test_the_page_of_the_command_line_is_what_the_commands_say() -> None:
    assert PAGE.read_text() == reference(), "run `python -m tools.cli_reference`"
