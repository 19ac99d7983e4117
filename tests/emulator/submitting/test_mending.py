"""`cancel`, `retry` and `repro` as they are typed."""

import json
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from emulator.server import EmulatorServer
from submitter.secrets import SecretStore

QUEUE = "c5a-large-spot"
RUN = ("run", "--queue", QUEUE, "--image", "trainer:1", "--no-pin")
FAIL_2 = (*RUN, "--name", "exp", "--num-seed", "3", "--attempts", "1", "--command", "test {seed} != 2")
LONG = (*RUN, "--name", "exp", "--num-seed", "2", "--command", "exec sleep 600 # {seed}")
WAITING = ("--wait", "--poll", "0.1")

Submitter = Callable[..., Any]


def counts(submitter: Submitter, name: str) -> dict[str, int]:
    found: dict[str, int] = submitter("status", name, "--json").document["counts"]
    return found


def test_cancel_asks_and_without_a_terminal_says_how_to_answer(submitter: Submitter) -> None:
    submitter(*LONG)
    refused = submitter("cancel", "exp")
    assert refused.code == 2
    assert refused.err.splitlines() == [
        "Error: `cancel` asks before it ends runs, and nobody is there to answer.",
        "Add --yes.",
    ]
    assert "cancelled" not in counts(submitter, "exp")


@pytest.mark.parametrize("option", ["YES", "FORCE"])
def test_no_variable_answers_for_the_user(submitter: Submitter, monkeypatch: pytest.MonkeyPatch, option: str) -> None:
    submitter(*LONG, "--owner", "labmate")
    monkeypatch.setenv(f"SUBMITTER_CANCEL_{option}", "1")
    assert submitter("cancel", "labmate/exp", *({"--yes", "--force"} - {f"--{option.lower()}"})).code == 2
    assert "cancelled" not in counts(submitter, "labmate/exp")


@pytest.mark.parametrize(("answer", "code", "cancelled"), [("y\n", 0, True), ("n\n", 1, False)])
def test_the_answer_decides(  # noqa: PLR0917 - fixtures and parameters
    submitter: Submitter,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    answer: str,
    code: int,
    cancelled: bool,
) -> None:
    submitter(*LONG)
    (tmp_path / "answer").write_text(answer)
    with (tmp_path / "answer").open() as typed:
        monkeypatch.setattr(sys, "stdin", typed)
        monkeypatch.setattr(typed, "isatty", lambda: True)
        done = submitter("cancel", "exp")
    assert done.code == code
    assert "exp: 2 runs: " in done.err
    assert ("Nothing was changed." in done.err) is not cancelled
    assert submitter("show", "exp", "--json").document["submissions"][-1]["kind"] == ("cancel" if cancelled else "run")
    assert submitter("show", "exp").out.endswith(": runs 1-2, those that had not ended\n") is cancelled


def test_cancel_ends_the_named_sweep_only(submitter: Submitter, wait_until: Callable[..., Any]) -> None:
    submitter(*LONG)
    submitter(*("exp2" if word == "exp" else word for word in LONG))
    done = submitter("cancel", "exp", "--yes", "--json").document
    assert (done["cancelled"], done["runs"]) == (2, "1-2")
    wait_until(lambda: counts(submitter, "exp") == {"cancelled": 2})
    assert "cancelled" not in counts(submitter, "exp2")
    again = submitter(*LONG)
    assert "0 runs submitted" in again.out
    assert "submitter retry" in again.err


def test_one_run_can_be_cancelled(submitter: Submitter, wait_until: Callable[..., Any]) -> None:
    submitter(*LONG)
    assert submitter("cancel", "exp", "--seed", "2", "--yes").out.endswith("/exp: 1 run told to end.\n")
    wait_until(lambda: submitter("status", "exp", "--seed", "2", "--json").document["runs"][0]["status"] == "cancelled")
    assert submitter("status", "exp", "--seed", "1", "--json").document["runs"][0]["status"] != "cancelled"


def test_only_what_was_not_over_is_told_to_end(submitter: Submitter, wait_until: Callable[..., Any]) -> None:
    command = ("run", *RUN[1:], "--name", "exp", "--command", "test {seed} = 1 || exec sleep 60")
    submitter(*command, "--num-seed", "3")
    wait_until(lambda: counts(submitter, "exp").get("succeeded") == 1)
    done = submitter("cancel", "exp", "--yes", "--json").document
    assert (done["cancelled"], done["runs"]) == (2, "2-3")


def test_what_aws_has_forgotten_is_not_told_to_end(
    submitter: Submitter, server: EmulatorServer, aws: Callable[..., Any], wait_until: Callable[..., Any]
) -> None:
    submitter(*RUN, "--name", "exp", "--num-seed", "2", "--command", "echo {seed}")
    wait_until(lambda: len(aws("batch").list_jobs(jobQueue=QUEUE, jobStatus="SUCCEEDED")["jobSummaryList"]) == 1)
    server.control.advance(9 * 86_400)
    done = submitter("cancel", "exp", "--yes")
    assert (done.code, done.out) == (0, "emulator/exp: nothing is left to be cancelled of 2 runs: 2 unknown.\n")


def test_a_sweep_ends_also_when_aws_has_forgotten_some_of_its_arrays(
    submitter: Submitter, server: EmulatorServer, aws: Callable[..., Any], wait_until: Callable[..., Any]
) -> None:
    line = (*RUN, "--name", "exp", "--command", "test {seed} -lt 4 || exec sleep 600")
    submitter(*line, "--seeds", "1-3")
    wait_until(lambda: len(aws("batch").list_jobs(jobQueue=QUEUE, jobStatus="SUCCEEDED")["jobSummaryList"]) == 1)
    server.control.advance(9 * 86_400)
    submitter(*line, "--seeds", "1-6")
    done = submitter("cancel", "exp", "--yes", "--json")
    assert (done.code, done.document["runs"]) == (0, "4-6")
    wait_until(lambda: counts(submitter, "exp") == {"unknown": 3, "cancelled": 3})


def test_run_calls_cancelled_only_what_a_cancel_has_ended(
    submitter: Submitter, aws: Callable[..., Any], wait_until: Callable[..., Any]
) -> None:
    line = (
        *RUN,
        "--name",
        "exp",
        "--num-seed",
        "3",
        "--attempts",
        "1",
        "--command",
        "test {seed} = 1 && exec sleep 600",
    )
    submitter(*line)
    wait_until(lambda: counts(submitter, "exp").get("failed") == 2)
    submitter("cancel", "exp", "--yes")
    batch = aws("batch")
    wait_until(lambda: batch.list_jobs(jobQueue=QUEUE, jobStatus="FAILED")["jobSummaryList"])  # nobody has looked since
    again = submitter(*line, "--json")
    assert (again.document["cancelled"], again.document["already"]) == (1, 2)
    assert "of 3 runs, 2 are submitted already and 1 is cancelled" in again.err


def test_run_tells_cancelled_runs_from_failed_ones_while_their_array_goes_on(
    submitter: Submitter, wait_until: Callable[..., Any]
) -> None:
    line = (*RUN, "--name", "exp", "--num-seed", "4", "--attempts", "1", "--command", "test {seed} -gt 2 && sleep 600")
    submitter(*line)
    wait_until(lambda: counts(submitter, "exp") == {"failed": 2, "running": 2})
    cancelled = submitter("cancel", "exp", "--index", "1-3", "--yes", "--json").document
    assert (cancelled["cancelled"], cancelled["runs"]) == (1, "3")
    wait_until(lambda: counts(submitter, "exp") == {"failed": 2, "running": 1, "cancelled": 1})
    told = "of 4 runs, 3 are submitted already and 1 is cancelled"
    dry = submitter(*line, "--dry-run")
    assert (dry.document["cancelled"], dry.document["already"], dry.document["undecided"]) == (1, 3, 0)
    assert told in dry.err
    again = submitter(*line, "--json")
    assert (again.document["cancelled"], again.document["already"]) == (1, 3)
    assert told in again.err
    submitter("cancel", "exp", "--yes")


@pytest.mark.parametrize("option", ["--seed", "--index"])
@pytest.mark.parametrize("command", [("cancel", "exp", "--yes"), ("retry", "exp"), ("status", "exp")])
def test_an_empty_choice_is_not_all(submitter: Submitter, command: tuple[str, ...], option: str) -> None:
    """`--seed "$SEED"`, with a variable that is not set."""
    submitter(*LONG)
    refused = submitter(*command, option, "")
    assert (refused.code, refused.out) == (2, "")
    assert "it is empty: write numbers, such as 3 or 1-3,7." in refused.err
    assert "cancelled" not in counts(submitter, "exp")


def test_none_that_has_failed_is_no_error_but_for_repro(submitter: Submitter) -> None:
    submitter(*RUN, "--name", "exp", "--num-seed", "2", "--command", "echo {seed}", *WAITING)
    assert submitter("status", "exp", "--failed", "--json").document["runs"] == []
    none = "None of the runs that were asked for has failed or was cancelled.\n"
    logs = submitter("logs", "exp", "--failed")
    assert (logs.code, logs.out, logs.err) == (0, "", none)
    assert submitter("status", "exp", "--failed").out.endswith(none)
    assert "nothing is left to be cancelled" in submitter("cancel", "exp", "--failed").out
    refused = submitter("repro", "exp", "--failed")
    assert (refused.code, refused.err) == (
        2,
        "Error: None of these runs has failed or was cancelled.\nLeave out --failed.\n",
    )


def test_an_owner_that_contradicts_the_name_is_refused(submitter: Submitter) -> None:
    submitter(*LONG)
    refused = submitter("cancel", "emulator/exp", "--owner", "somebody", "--yes")
    assert (refused.code, refused.err.splitlines()[0]) == (2, "Error: emulator/exp is not somebody's.")
    assert submitter("status", "emulator/exp", "--owner", "emulator").code == 0
    for line in (("--owner", "somebody", "--from-wandb", "a/b"), ("exp", "--state", "killed"), ("--from-wandb", "")):
        assert submitter("retry", *line).code == 2
    assert "cancelled" not in counts(submitter, "exp")


def test_what_a_refused_retry_asked_for_is_not_what_the_run_was_given(
    submitter: Submitter, fault: Callable[..., None]
) -> None:
    submitter(*FAIL_2, *WAITING)
    fault("batch", "SubmitJob", "refuse", code="ClientException", message="no", count=1)
    assert submitter("retry", "exp", "--image", "other:9").code == 4
    assert " trainer:1 " in submitter("repro", "exp", "--seed", "2").out
    assert submitter("retry", "exp").code == 0
    assert submitter("status", "exp", "--seed", "2", "--json").document["runs"][0]["image"] == "trainer:1"


@pytest.mark.parametrize("chosen", [(), ("--seed", "2")])
def test_what_is_over_cannot_be_cancelled_and_nobody_is_asked(submitter: Submitter, chosen: tuple[str, ...]) -> None:
    submitter(*FAIL_2, *WAITING)
    done = submitter("cancel", "exp", *chosen)
    assert done.code == 0
    assert "nothing is left to be cancelled" in done.out
    assert submitter("cancel", "exp", *chosen, "--json").document["cancelled"] == 0
    assert [entry["kind"] for entry in submitter("show", "exp", "--json").document["submissions"]] == ["run"]


def test_jobs_from_before_a_sweep_was_begun_afresh_are_cancelled_also_when_the_newer_are_over(
    submitter: Submitter, wait_until: Callable[..., Any], aws: Callable[..., Any]
) -> None:
    submitter(*LONG, "--num-seed", "1")
    submitter(*RUN, "--name", "exp", "--command", "echo {seed}", "--new", *WAITING)
    told = submitter("cancel", "exp", "--yes", "--json").document
    assert (told["cancelled"], told["older"]) == (0, 1)
    assert "nothing is left to be cancelled" in submitter("cancel", "exp", "--yes").out

    def running() -> list[Any]:
        return list(aws("batch").list_jobs(jobQueue="c5a-large-spot", jobStatus="RUNNING")["jobSummaryList"])

    wait_until(lambda: not running())


def test_a_cancel_tells_how_many_runs_from_before_it_ends_too(
    submitter: Submitter, wait_until: Callable[..., Any]
) -> None:
    submitter(*LONG, "--num-seed", "3")
    submitter("cancel", "exp", "--seed", "2", "--yes")
    wait_until(lambda: submitter("status", "exp", "--json").document["counts"].get("cancelled") == 1)
    submitter(*LONG, "--num-seed", "2", "--new")
    told = submitter("cancel", "exp", "--yes").out
    assert told == "emulator/exp: 2 runs, and 2 from before --new told to end.\n"


def test_several_runs_are_chosen_by_ranges_and_by_naming_an_option_again(submitter: Submitter) -> None:
    submitter(*LONG[:-3], "6", *LONG[-2:])
    assert submitter("cancel", "exp", "--seed", "1-2", "--seed", "4", "--yes", "--json").document["runs"] == "1-2,4"
    assert submitter("cancel", "exp", "--index", "5,6", "--yes", "--json").document["runs"] == "5-6"
    assert len(submitter("status", "exp", "--seed", "1,3", "--json").document["runs"]) == 2
    refused = submitter("cancel", "exp", "--seed", "one", "--yes")
    assert (refused.code, refused.err.splitlines()[-1]) == (2, "Write it like 1-3,7.")
    submitter("cancel", "exp", "--yes")


@pytest.mark.parametrize("command", ["cancel", "retry"])
def test_somebody_elses_sweep_needs_force(submitter: Submitter, server: EmulatorServer, command: str) -> None:
    submitter(*FAIL_2, "--owner", "labmate", *WAITING)
    before = [call.operation for call in server.control.record.calls("batch")]
    yes = ["--yes"] if command == "cancel" else []
    refused = submitter(command, "exp", "--owner", "labmate", *yes)
    assert refused.code == 2
    assert "The sweep labmate/exp is labmate's" in refused.err
    assert submitter(command, "labmate/none", *yes).err.startswith("Error: There is no sweep labmate/none.")
    assert [call.operation for call in server.control.record.calls("batch")] == before
    assert submitter(command, "labmate/exp", "--force", *yes).code == 0


def test_what_failed_is_told_and_retried(submitter: Submitter) -> None:
    assert submitter(*FAIL_2, *WAITING).code == 1
    again = submitter(*FAIL_2)
    assert "3 runs: 1 failed, 2 succeeded" in again.out
    assert "/exp` runs it again" in again.err
    (retried,) = submitter("retry", "exp", "--json").document["sweeps"]
    assert (retried["submitted"], retried["runs"]) == (1, "2")
    assert submitter("show", "exp", "--json").document["submissions"][-1]["kind"] == "retry"


def test_nothing_to_retry_is_no_error(submitter: Submitter) -> None:
    submitter(*RUN, "--name", "exp", "--command", "echo {seed}", *WAITING)
    done = submitter("retry", "exp")
    assert (done.code, done.out.endswith("/exp: 0 runs submitted again.\n")) == (0, True)


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("retry", "exp", "--num-memory", "4096"), 2, "4096 MiB do not fit"),
        (("retry", "exp", "--num-hours", "0.01"), 2, "A time limit of 0.01 hours"),
        (("retry", "exp", "--queue", "c5a-larg"), 3, "The stack has no queue c5a-larg."),
        (("retry", "exp", "--seed", "9"), 2, "No run of the sweep is like that."),
        (("retry", "nothing"), 2, "There is no sweep"),
        (("cancel", "nothing", "--yes"), 2, "There is no sweep"),
        (("cancel", "exp", "--yes", "--where", "colour=red"), 2, "does not name a parameter"),
        (("repro", "nothing"), 2, "There is no sweep"),
        (("repro", "exp"), 2, "3 runs are like that, and only one can be chosen."),
    ],
)
def test_what_cannot_work_is_one_sentence_and_sends_nothing(
    submitter: Submitter, server: EmulatorServer, arguments: tuple[str, ...], code: int, sentence: str
) -> None:
    submitter(*FAIL_2, *WAITING)
    before = len([call for call in server.control.record.calls("batch") if call.operation == "SubmitJob"])
    refused = submitter(*arguments)
    assert refused.code == code
    assert sentence in refused.err
    assert "Traceback" not in refused.err
    assert len([call for call in server.control.record.calls("batch") if call.operation == "SubmitJob"]) == before


def test_a_changed_image_is_marked_in_the_table(submitter: Submitter) -> None:
    submitter(*FAIL_2, *WAITING)
    submitter("retry", "exp", "--image", f"trainer@sha256:{'a' * 64}", "--num-memory", "600", "--num-hours", "1")
    table = submitter("status", "exp", "--runs").out
    assert "other image" in table
    assert f"trainer@sha256:{'a' * 64}" in table


def test_repro_is_the_docker_line_of_the_run(submitter: Submitter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_very_secret")
    image = f"trainer@sha256:{'a' * 64}"
    submitter(
        *("run", "--queue", QUEUE, "--name", "exp", "--image", image, "--seeds", "7", "--grid", "env-id=Ant's,B"),
        *("--command", "python train.py", "--env", "MODE=fast", "--secret", "HF_TOKEN", "--num-memory", "512"),
    )
    done = submitter("repro", "exp", "--where", "env-id=Ant's,seed=7")
    nonce = submitter("show", "exp", "--json").document["nonce"]
    words = shlex.split(done.out)
    assert words[:4] == ["docker", "run", "--rm", "-it"]
    variables = {words[at + 1] for at, word in enumerate(words) if word == "-e"}
    assert {"HF_TOKEN", "MODE=fast", f"WANDB_RUN_ID={nonce}-1", "WANDB_RESUME=allow", "OMP_NUM_THREADS=1"} <= variables
    assert "--memory=512m" in words
    assert words[words.index(image) + 1 : words.index(image) + 3] == ["/bin/sh", "-c"]
    assert shlex.split(words[-1]) == ["python", "train.py", "--env-id", "Ant's", "--seed", "7"]
    assert "hf_very_secret" not in done.out + done.err
    assert "HF_TOKEN" in done.err
    assert f"writes into the W&B run {nonce}-1; leave -e WANDB_RUN_ID=... out for a new one." in done.err
    document = submitter("repro", "exp", "--index", "2", "--json").document
    assert document["command"] == "python train.py --env-id B --seed 7"
    assert "hf_very_secret" not in json.dumps(document)


def test_the_command_of_a_repro_runs_as_it_did(submitter: Submitter) -> None:
    """The words after the image are what the container gets: they are run here, without the container."""

    submitter(*RUN, "--name", "exp", "--command", 'echo "a  b" $0 {seed}', *WAITING)
    logged = submitter("logs", "exp").out
    words = shlex.split(submitter("repro", "exp").out)
    command = words[words.index("trainer:1") + 1 :]
    again = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert again == logged


def test_repro_opens_a_shell_in_such_a_container(
    submitter: Submitter, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """docker is a program that notes its arguments: what is typed next is the user's."""
    docker = tmp_path / "bin" / "docker"
    docker.parent.mkdir()
    docker.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/arguments\nexit 7\n')
    docker.chmod(0o755)
    submitter(*RUN, "--name", "exp", "--command", "python train.py", *WAITING)
    monkeypatch.setenv("PATH", str(docker.parent))
    refused = submitter("repro", "exp", "--shell")
    assert refused.code == 2
    assert "there is no terminal for it." in refused.err
    assert not (tmp_path / "arguments").exists()
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    done = submitter("repro", "exp", "--shell")
    assert done.code == 7
    assert "The run's command is: python train.py --seed 1" in done.err
    arguments = (tmp_path / "arguments").read_text().splitlines()
    assert arguments[:3] == ["run", "--rm", "-it"]
    assert "python train.py --seed 1" not in arguments
    docker.unlink()
    assert "Cannot run docker" in submitter("repro", "exp", "--shell").err


def test_a_wandb_key_that_is_kept_no_more_and_is_not_here_is_asked_for(
    submitter: Submitter, machine: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("NETRC", str(tmp_path / "none"))
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    submitter(*RUN, "--name", "exp", "--command", "false # {seed}", "--attempts", "1", "--wandb-key", "old", *WAITING)
    store = SecretStore(machine.session, machine.contract.secret_arn)
    (label,) = store.labels()
    store.remove([label], set)
    refused = submitter("retry", "exp")
    assert (refused.code, "is kept no more, and there is none here" in refused.err) == (3, True)
    assert len(submitter("show", "exp", "--json").document["submissions"]) == 1


def test_a_key_that_is_kept_no_more_is_kept_again_from_this_shell(
    submitter: Submitter, machine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`prune` takes keys away that no unfinished run needs."""
    monkeypatch.setenv("HF_TOKEN", "old")
    command = ("--name", "exp", "--command", "test $HF_TOKEN = new # {seed}", "--secret", "HF_TOKEN")
    submitter(*RUN, *command, "--attempts", "1", *WAITING)
    store = SecretStore(machine.session, machine.contract.secret_arn)
    (label,) = store.labels()
    store.remove([label], set)
    monkeypatch.delenv("HF_TOKEN")
    refused = submitter("retry", "exp")
    assert (refused.code, "HF_TOKEN names a variable that is not set" in refused.err) == (2, True)
    monkeypatch.setenv("HF_TOKEN", "new")
    assert submitter("retry", "exp").code == 0
    assert submitter("wait", "exp", "--poll", "0.1").code == 0
