"""Values that only jobs may see: kept by label in the stack's secret, read by jobs, and shown nowhere."""

import dataclasses
import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import boto3
import pytest

from emulator.server import EmulatorServer
from infra.outputs import StackOutputs
from submitter.errors import ConfigurationError
from submitter.ledger import Ledger
from submitter.secrets import Secrets, SecretStore

QUEUE = "c5a-large-spot"
SENTINEL = "sentinel-5f0c1e"
RUN = ("run", "--queue", QUEUE, "--name", "first", "--image", "trainer:1", "--command")
SHOW = 'printf %s "$WANDB_API_KEY" | tr a-z A-Z'
"""Whether the job has the value, without the value itself in its log."""

Submitter = Callable[..., Any]


@pytest.fixture
def contract(contract: StackOutputs, aws: Callable[..., Any]) -> StackOutputs:
    """The stack with a secret as `pulumi up` makes it: without any version."""
    return dataclasses.replace(contract, secret_arn=aws("secretsmanager").create_secret(Name="keys")["ARN"])


@pytest.fixture
def store(
    contract: StackOutputs, boto3_session: boto3.Session, server: EmulatorServer, monkeypatch: Any
) -> SecretStore:
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
    return SecretStore(boto3_session, contract.secret_arn)


@pytest.fixture
def labels(aws: Callable[..., Any]) -> Callable[[], set[str]]:
    """The labels that the secret has now."""

    def read() -> set[str]:
        versions = aws("secretsmanager").describe_secret(SecretId="keys")["VersionIdsToStages"]
        return {label for found in versions.values() for label in found if label.startswith("key-")}

    return read


@pytest.fixture
def requests(server: EmulatorServer, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, bytes]]:
    """Every request from now on: its operation and its body, which the account's own record leaves out."""
    seen: list[tuple[str, bytes]] = []
    serve = server._faults

    def recording(environ: Any, start_response: Any) -> Any:
        seen.append((environ["emulator.call"].operation, environ["wsgi.input"].getvalue()))
        return serve(environ, start_response)

    monkeypatch.setattr(server, "_faults", recording)
    return seen


@pytest.fixture
def lose_keys(store: SecretStore, labels: Callable[[], set[str]]) -> Callable[[], None]:
    """Take all keys away, as `prune` does with those that no unfinished run needs."""

    def lose() -> None:
        store.remove(labels(), none_in_use)

    return lose


def none_in_use() -> set[str]:
    return set()


def puts(server: EmulatorServer) -> int:
    return len(server.control.record.calls("secretsmanager", "PutSecretValue"))


def test_values_are_put_once_and_several_people_have_theirs(
    store: SecretStore, server: EmulatorServer, labels: Callable[[], set[str]]
) -> None:
    ada, bob = Secrets({"WANDB_API_KEY": "ada"}), Secrets({"WANDB_API_KEY": "bob"})
    for secrets in (ada, bob, ada, bob):
        store.put(secrets, none_in_use)
    assert labels() == {ada.label, bob.label}
    assert puts(server) == 2


def test_at_the_limit_of_labels_the_oldest_that_nothing_uses_goes(
    store: SecretStore, labels: Callable[[], set[str]]
) -> None:
    people = [Secrets({"WANDB_API_KEY": str(number)}) for number in range(21)]
    for secrets in people[:19]:  # and AWSCURRENT, which the first version has
        store.put(secrets, none_in_use)
    store.put(people[19], lambda: {people[0].label})
    assert labels() == {secrets.label for secrets in people[:20]} - {people[1].label}
    store.put(people[1], none_in_use)
    assert people[1].label in labels(), "a version that had lost its label has it again"


def test_when_unfinished_runs_use_all_labels_one_is_told_what_to_do(
    store: SecretStore, labels: Callable[[], set[str]]
) -> None:
    for number in range(19):
        store.put(Secrets({"WANDB_API_KEY": str(number)}), none_in_use)
    with pytest.raises(ConfigurationError, match="unfinished runs use all of its 20 labels") as refused:
        store.put(Secrets({"WANDB_API_KEY": "one more"}), labels)
    assert "submitter status" in str(refused.value.remedy)


@pytest.mark.parametrize("kind", ["drop", "error-after"])
def test_an_answer_about_a_label_may_be_lost(
    store: SecretStore, labels: Callable[[], set[str]], fault: Callable[..., None], kind: str
) -> None:
    """The SDK asks again, and what is gone already cannot be taken away."""
    people = [Secrets({"WANDB_API_KEY": str(number)}) for number in range(20)]
    for secrets in people[:19]:
        store.put(secrets, none_in_use)
    for secrets in (people[19], people[0]):  # the second one's version is there, without its label
        fault("secretsmanager", "UpdateSecretVersionStage", kind, count=1)
        store.put(secrets, none_in_use)
        assert secrets.label in labels()
    fault("secretsmanager", "UpdateSecretVersionStage", kind, count=1)
    assert store.remove([people[0].label], none_in_use) == {people[0].label}
    assert people[0].label not in labels()


def test_a_label_that_has_come_into_use_while_room_was_made_is_given_back_and_another_goes(
    store: SecretStore, labels: Callable[[], set[str]]
) -> None:
    people = [Secrets({"WANDB_API_KEY": str(number)}) for number in range(20)]
    for secrets in people[:19]:
        store.put(secrets, none_in_use)
    looks: list[set[str]] = [set()]
    store.put(people[19], lambda: looks.pop() if looks else {people[0].label})
    assert labels() == {secrets.label for secrets in people} - {people[1].label}


def test_a_retry_whose_key_goes_as_it_begins_sends_nothing_and_says_so(
    submitter: Submitter,
    lose_keys: Callable[[], None],
    server: EmulatorServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HF_TOKEN", "token")
    options = ("--attempts", "1", "--wait", "--poll", "0.1")
    submitter(*RUN, "false # {seed}", "--secret", "HF_TOKEN", *options)
    sent = len(server.control.record.calls("batch", "SubmitJob"))
    put = Ledger.put

    def just_before(ledger: Ledger, *arguments: Any, **named: Any) -> bool:
        lose_keys()
        return put(ledger, *arguments, **named)

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "put", just_before)
        refused = submitter("retry", "first")
    assert (refused.code, "`prune` has taken away HF_TOKEN at this very moment" in refused.err) == (3, True)
    assert len(server.control.record.calls("batch", "SubmitJob")) == sent
    assert submitter("retry", "first", "--json").document["sweeps"][0]["submitted"] == 1


def test_a_job_reads_its_owners_key_and_variables(submitter: Submitter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_PROJECT", "rl")
    monkeypatch.setenv("HF_TOKEN", "token")
    command = f"{SHOW}; echo; echo $WANDB_PROJECT $WANDB_TAGS $HF_TOKEN {{seed}}"
    for key in ("first", "second"):
        options = ("--wandb-key", key, "--secret", "HF_TOKEN", "--wait", "--poll", "0.1", "--new")
        assert submitter(*RUN, command, *options).code == 0
        shouted, rest = submitter("logs", "first").out.splitlines()
        assert shouted == key.upper()
        project, tags, token, seed = rest.split()
        assert (project, token, seed) == ("rl", "token", "1")
        assert tags.split(",")[0] == "first"


def test_the_names_of_secrets_are_in_the_record_and_go_to_a_sweep_that_is_like_it(
    submitter: Submitter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", SENTINEL)
    assert submitter(*RUN, "true # {seed}", "--secret", "HF_TOKEN").code == 0
    assert submitter("show", "first", "--json").document["options"]["secret"] == ["HF_TOKEN"]
    extended = submitter(*RUN, "true # {seed}", "--num-seed", "2")
    assert "The sweep was begun with --secret HF_TOKEN; 1 run submitted now: no --secret." in extended.err
    assert submitter("run", "--queue", QUEUE, "--name", "second", "--like", "first").code == 0
    assert submitter("show", "second", "--json").document["options"]["secret"] == ["HF_TOKEN"]


@pytest.mark.parametrize(
    "place",
    [
        "--env=SETTING=%s",
        "--env=S_%s=1",
        "--tag=token=%s",
        "--tag=%s=token",
        "--grid=token=%s",
        "--grid=%s=token",
        "--command=train --token %s",
        "--image=registry.example.org/%s",
        "--name=%s",
        "--owner=%s",
        "--seed-flag=--%s",
    ],
)
def test_a_value_that_others_would_read_is_refused(
    submitter: Submitter, server: EmulatorServer, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    value = SENTINEL.replace("-", "_") if place.startswith("--env=S_") else SENTINEL
    monkeypatch.setenv("HF_TOKEN", value)
    refused = submitter("run", "--queue", QUEUE, "--image", "trainer:1", "--secret", "HF_TOKEN", place % value)
    assert (refused.code, "The value of HF_TOKEN is in the command" in refused.err) == (2, True)
    assert not server.control.record.calls("batch", "SubmitJob")


def test_a_variable_of_wandb_may_be_a_secret(submitter: Submitter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_PROJECT", SENTINEL)
    command = (*RUN, "echo $WANDB_PROJECT | tr a-z A-Z; : {seed}", "--wandb-key", "key", "--wait", "--poll", "0.1")
    done = submitter(*command, "--secret", "WANDB_PROJECT")
    assert done.code == 0, done.err
    assert submitter("logs", "first").out.strip() == SENTINEL.upper()


def test_auto_tag_tags_the_runs_as_cleanrls_benchmark_script_does(
    submitter: Submitter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    git = ["git", "-c", "user.name=ada", "-c", "user.email=ada@example.org"]
    for command in (["init", "--quiet"], ["commit", "--quiet", "--allow-empty", "-m", "x"], ["tag", "v1.0.0b2"]):
        subprocess.run([*git, *command], check=True)
    options = ("--wandb-key", "key", "--auto-tag", "--wait", "--poll", "0.1")
    assert submitter(*RUN, "echo $WANDB_TAGS; : {seed}", *options).code == 0
    name, commit, tag = submitter("logs", "first").out.strip().split(",")
    assert (name, tag) == ("first", "v1.0.0b2")
    assert commit.startswith("git-")


def test_an_unfinished_runs_label_is_in_use(
    submitter: Submitter, store: SecretStore, labels: Callable[[], set[str]]
) -> None:
    submitter(*RUN, "exec sleep 600 # {seed}", "--wandb-key", "of-the-running")
    (used,) = labels()
    for number in range(18):
        store.put(Secrets({"WANDB_API_KEY": str(number)}), none_in_use)
    assert submitter(*RUN, "echo {seed}", "--name", "second", "--wandb-key", "one-more").code == 0
    assert used in labels(), "though it is the oldest"


def test_a_tracking_command_without_a_key_submits_nothing(
    submitter: Submitter, server: EmulatorServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    monkeypatch.setenv("NETRC", str(tmp_path / "none"))
    before = len(server.control.record.calls("batch"))
    refused = submitter(*RUN, "python train.py --track")
    assert refused.code == 3
    assert "wandb login" in refused.err
    assert len(server.control.record.calls("batch")) == before


def test_a_secret_shows_nowhere_but_in_the_request_that_keeps_it_and_inside_the_job(
    submitter: Submitter,
    requests: list[tuple[str, bytes]],
    aws: Callable[..., Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("WANDB_API_KEY", SENTINEL)
    monkeypatch.setenv("HF_TOKEN", SENTINEL)
    monkeypatch.chdir(tmp_path)
    command = f"{SHOW}; : {{seed}}"
    said = [
        submitter(*RUN, command, "--secret", "HF_TOKEN", "--wait", "--poll", "0.1", "--num-seed", "2"),
        submitter(*RUN, command, "--secret", "HF_TOKEN", "--dry-run"),
        submitter("run", "--image", "trainer:1", "--secret", "HF_TOKEN", "--command", "python train.py --track"),
        submitter("--debug", *RUN, command, "--secret", "HF_TOKEN", "--num-memory", "1", "--wandb-key", SENTINEL),
        submitter("--debug", *RUN, command, "--secret", SENTINEL.replace("-", "_")),
        *(submitter(*line) for line in (("status", "first", "--runs"), ("show", "first", "--json"), ("logs", "first"))),
    ]
    assert [done.code for done in said] == [0, 0, 0, 2, 2, 0, 0, 0]
    assert SENTINEL.upper() in said[-1].out, "the job has it"
    aws("secretsmanager").delete_secret(SecretId="keys", ForceDeleteWithoutRecovery=True)
    said.append(submitter("--debug", *RUN, command, "--name", "second"))
    assert said[-1].code == 4
    for done in said:
        assert SENTINEL not in done.out + done.err

    assert {operation for operation, body in requests if SENTINEL.encode() in body} == {"PutSecretValue"}
    batch = aws("batch")
    jobs = [job for entry in _entries(aws) for job in _jobs(entry)]
    shown = [
        batch.describe_jobs(jobs=[*jobs, f"{jobs[0]}:0"]),
        batch.describe_job_definitions(),
        aws("dynamodb").scan(TableName="ledger"),
        json.loads(urlopen(f"{os.environ['AWS_ENDPOINT_URL']}/_emulator/requests").read()),  # noqa: S310 - http on the loopback interface
    ]
    assert jobs
    assert SENTINEL not in json.dumps(shown, default=str)
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert tmp_path / "debug.sh.docker.sh" in files
    assert not [file for file in files if SENTINEL in file.read_text()]
    assert str(Path.home()) not in (tmp_path / "debug.sh.docker.sh").read_text()


def test_a_retry_keeps_a_key_again_once_the_ledger_has_what_needs_it_and_shows_it_nowhere(  # noqa: PLR0917 - fixtures
    submitter: Submitter,
    lose_keys: Callable[[], None],
    requests: list[tuple[str, bytes]],
    aws: Callable[..., Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WANDB_API_KEY", "the old key")
    submitter(*RUN, f"{SHOW}; false {{seed}}", "--attempts", "1", "--wait", "--poll", "0.1")
    lose_keys()
    monkeypatch.setenv("WANDB_API_KEY", SENTINEL)
    requests.clear()
    said = [submitter("--debug", "retry", "first", "--json")]
    assert said[0].document["sweeps"][0]["submitted"] == 1
    order = [
        operation for operation, _ in requests if operation in {"TransactWriteItems", "PutSecretValue", "SubmitJob"}
    ]
    assert order == ["TransactWriteItems", "PutSecretValue", "SubmitJob"]
    said += [submitter("wait", "first", "--poll", "0.1"), submitter("show", "first"), submitter("logs", "first")]
    assert SENTINEL.upper() in said[-1].out, "the job has it"
    assert {operation for operation, body in requests if SENTINEL.encode() in body} == {"PutSecretValue"}
    aws("secretsmanager").delete_secret(SecretId="keys", ForceDeleteWithoutRecovery=True)
    said.append(submitter("--debug", "retry", "first"))
    assert said[-1].code == 4
    assert not [done for done in said if SENTINEL in done.out + done.err]
    jobs = [job for entry in _entries(aws) for job in _jobs(entry)]
    shown = [aws("batch").describe_jobs(jobs=jobs), aws("batch").describe_job_definitions(), _entries(aws)]
    assert len(jobs) == 2
    assert SENTINEL not in json.dumps(shown, default=str)
    assert not [file for file in tmp_path.rglob("*") if file.is_file() and SENTINEL in file.read_text()]


@pytest.mark.parametrize("command", ["exec sleep 600", "true"])
def test_a_retry_that_has_nothing_to_send_keeps_nothing(
    submitter: Submitter,
    lose_keys: Callable[[], None],
    server: EmulatorServer,
    monkeypatch: pytest.MonkeyPatch,
    wait_until: Callable[..., Any],
    *,
    command: str,
) -> None:
    monkeypatch.setenv("HF_TOKEN", SENTINEL)
    waiting = ("--wait", "--poll", "0.1") if command == "true" else ()
    submitter(*RUN, f"{command} # {{seed}}", "--secret", "HF_TOKEN", *waiting)
    # What has not begun cannot without its key.
    wait_until(lambda: submitter("status", "first", "--json").document["counts"].keys() <= {"running", "succeeded"})
    lose_keys()
    before = [call for call in server.control.record.calls() if call.changes]
    if command == "true":
        monkeypatch.delenv("HF_TOKEN")  # nothing needs it
    done = submitter("retry", "first")
    assert (done.code, "0 runs submitted again." in done.out) == (0, True)
    assert [call for call in server.control.record.calls() if call.changes] == before


def test_a_retry_needs_the_keys_of_the_chosen_runs_only(
    submitter: Submitter, lose_keys: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "token")
    options = ("--attempts", "1", "--wait", "--poll", "0.1")
    submitter(*RUN, "false # {seed}", "--secret", "HF_TOKEN", *options)
    submitter(*RUN, "false # {seed}", "--num-seed", "2", *options)
    lose_keys()
    monkeypatch.delenv("HF_TOKEN")
    assert submitter("retry", "first", "--seed", "2", "--json").document["sweeps"][0]["runs"] == "2"
    refused = submitter("retry", "first", "--seed", "1")
    assert (refused.code, "HF_TOKEN names a variable that is not set" in refused.err) == (2, True)


def _entries(aws: Callable[..., Any]) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = aws("dynamodb").scan(TableName="ledger")["Items"]
    return entries


def _jobs(entry: dict[str, Any]) -> list[str]:
    return [slot["M"]["job"]["S"] for slot in entry["slots"]["L"] if slot["M"].get("job", {}).get("S", "-") != "-"]
