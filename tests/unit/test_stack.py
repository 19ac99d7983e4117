"""Reading the contract from a file and from standard input; Pulumi itself is asked in tests/e2e."""

import io
import json
import time
from pathlib import Path

import pytest

from submitter import stack
from submitter.errors import ConfigurationError
from submitter.stack import StackSource, read_contract


def test_a_file_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="No such file") as refused:
        read_contract(StackSource(outputs=str(tmp_path / "outputs.json")))
    assert "pulumi stack output --json" in str(refused.value.remedy)


@pytest.mark.parametrize(
    ("text", "sentence"), [("{", "is not JSON"), ("[1]", "JSON object is expected"), ("{}", "never deployed")]
)
def test_what_is_no_contract_says_what_it_is(text: str, sentence: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    with pytest.raises(ConfigurationError, match=sentence):
        read_contract(StackSource(outputs="-"))


def test_a_binary_file_is_said_not_to_be_text(tmp_path: Path) -> None:
    (tmp_path / "outputs").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigurationError, match="not UTF-8"):
        read_contract(StackSource(outputs=str(tmp_path / "outputs")))


def test_a_contract_of_another_version_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "outputs.json").write_text(json.dumps({"schema_version": 99}))
    with pytest.raises(ConfigurationError, match="version 99"):
        read_contract(StackSource(outputs=str(tmp_path / "outputs.json")))


def test_a_pulumi_that_hangs_is_told_of_and_ended_with_all_that_it_has_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pulumi = tmp_path / "pulumi"
    pulumi.write_text(f"#!/bin/sh\nsleep 300 & echo $! > {tmp_path}/child; wait\n")
    pulumi.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(stack, "_SLOW_SECONDS", 0.5)
    monkeypatch.setattr(stack, "_SECONDS", 2)
    said: list[str] = []
    with pytest.raises(ConfigurationError, match="`pulumi` gave no answer in 2 seconds"):
        read_contract(StackSource(), say=said.append)
    assert said == ["`pulumi stack output` has not answered for 0.5 s: waiting."]
    child = int((tmp_path / "child").read_text())
    state = Path(f"/proc/{child}/stat")
    deadline = time.monotonic() + 20
    while state.exists() and state.read_text().rpartition(")")[2].split()[0] != "Z":
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_without_a_pulumi_program_the_cause_is_relayed_and_a_file_suggested(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ConfigurationError, match="Cannot run `pulumi`") as refused:
        read_contract(StackSource())
    assert "--outputs FILE" in str(refused.value.remedy)
