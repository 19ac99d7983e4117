"""The documentation that is made from the code, or describes it key by key."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from jsonschema import Draft202012Validator

from submitter.cli.main import group
from tools.cli_reference import PAGE, reference

ROOT = Path(__file__).parents[2]
SCHEMAS = sorted((ROOT / "docs" / "schemas").glob("*.json"))


MIGRATING = (ROOT / "docs" / "migrating-from-submit-exp.md").read_text()


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


@pytest.mark.parametrize(
    "name",
    [
        *("--exp-script", "--command", "--wandb-key", "--num-seed", "--job-queue", "--docker-tag", "--num-vcpu"),
        *("--num-memory", "--num-gpu", "--num-hours", "-b", "--build", "--archs", "-p", "--push", "--provider"),
        *("--aws-num-retries", "instance_types", "max_vcpus", "spot_bid_percentage", "profile"),
        *("on_demand_allocation_strategy", "spot_allocation_strategy", "AWS_DEFAULT_REGION"),
    ],
)
def test_each_flag_and_variable_of_cleanrl_has_its_line_in_the_page_on_migrating(name: str) -> None:
    first_cells = [line.split("|")[1] for line in MIGRATING.splitlines() if line.startswith("|")]
    assert any(re.search(rf"(?<![\w-]){name}(?![\w-])", cell) for cell in first_cells)


def test_the_page_on_migrating_names_options_and_keys_that_there_are() -> None:
    for line in re.findall(r"submitter ([a-z]+)((?: [^`#\n]*)?)", MIGRATING):
        command = group.get_command(click.Context(group), line[0])
        assert command is not None, line
        options = {option for parameter in command.params for option in parameter.opts + parameter.secondary_opts}
        assert set(re.findall(r"(?<=\s)--?[a-z][a-z-]*", line[1])) <= options, line
    keys = yaml.safe_load((ROOT / "Pulumi.yaml").read_text())["config"]
    named = [line.split("|")[2] for line in MIGRATING.partition("## Terraform")[2].splitlines() if line.startswith("|")]
    assert {key for cell in named for key in re.findall(r"`([a-zA-Z]+)`", cell)} <= set(keys)


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
