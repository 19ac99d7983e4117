"""The command line, in process, against an account with one queue."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click
import pytest

from emulator.faults import Rule
from emulator.server import EmulatorServer
from submitter.cli.main import group
from submitter.session import Watch

QUEUE = "c5a-large-spot"
ECHO = ("run", "--queue", QUEUE, "--name", "first", "--image", "trainer:1", "--command", "echo trained")
Submitter = Callable[..., Any]


def calls(server: EmulatorServer, service: str) -> list[str]:
    return [call.operation for call in server.control.record.calls(service)]


def test_a_sweep_is_submitted_watched_and_read(submitter: Submitter) -> None:
    submitted = submitter(*ECHO, "--num-seed", "3", "--wait", "--poll", "0.1", "--json")
    assert submitted.code == 0
    assert submitted.document["submitted"] == 3
    assert submitted.document["counts"] == {"succeeded": 3}

    runs = submitter("status", "first", "--runs", "--json").document["runs"]
    assert [(run["seed"], run["params"], run["status"], run["attempts"]) for run in runs] == [
        (seed, {}, "succeeded", 1) for seed in (1, 2, 3)
    ]
    assert submitter("logs", "first", "--seed", "2").out == "trained --seed 2\n"
    assert sorted(submitter("logs", "first").out.splitlines()) == [f"seed={s} | trained --seed {s}" for s in (1, 2, 3)]
    assert submitter("wait", "first").code == 0


def test_the_same_line_again_submits_nothing_and_says_what_is_done(submitter: Submitter) -> None:
    submitter(*ECHO, "--num-seed", "3", "--wait", "--poll", "0.1")
    again = submitter(*ECHO, "--num-seed", "3", "--json")
    assert again.code == 0
    assert again.document["submitted"] == 0
    assert again.document["already"] == 3
    assert again.document["counts"] == {"succeeded": 3}


def test_more_seeds_and_another_environment_extend_the_sweep(submitter: Submitter) -> None:
    grid = (*ECHO, "--num-seed", "2", "--json", "--grid")
    assert submitter(*grid, "env-id=CartPole-v1").document["submitted"] == 2
    assert submitter(*grid, "env-id=CartPole-v1,Acrobot-v1").document["submitted"] == 2
    runs = submitter("status", "first", "--runs", "--json").document["runs"]
    assert [(run["number"], run["params"]["env-id"], run["seed"]) for run in runs] == [
        (1, "CartPole-v1", 1),
        (2, "CartPole-v1", 2),
        (3, "Acrobot-v1", 1),
        (4, "Acrobot-v1", 2),
    ]


def test_up_to_the_answer_of_submitjob_a_run_makes_at_most_four_calls_of_batch(
    submitter: Submitter, server: EmulatorServer
) -> None:
    submitter("queues")
    before = len(calls(server, "batch"))
    assert submitter(*ECHO, "--num-seed", "1000").code == 0
    made = calls(server, "batch")[before:]
    assert len(made) <= 4
    assert made.count("SubmitJob") == 1


def test_a_failed_run_makes_waiting_exit_with_1_and_is_explained(submitter: Submitter) -> None:
    command = "test {seed} != 2"
    failed = submitter(
        *(*ECHO[:-1], command), "--num-seed", "2", "--attempts", "1", "--wait", "--poll", "0.1", "--json"
    )
    assert failed.code == 1
    assert failed.document["counts"] == {"succeeded": 1, "failed": 1}
    assert "Not all runs of" in failed.err
    (run,) = [r for r in submitter("status", "first", "--runs", "--json").document["runs"] if r["status"] == "failed"]
    assert (run["seed"], run["reason"]) == (2, "exit code 1")


def test_waiting_longer_than_allowed_exits_with_124_and_the_runs_go_on(submitter: Submitter) -> None:
    submitter(*ECHO[:-1], "exec sleep 60 # {seed}")
    waited = submitter("wait", "first", "--timeout", "0.2", "--poll", "0.1")
    assert waited.code == 124
    assert waited.out.startswith("emulator/first: 1 ")
    assert "go on" in waited.err
    waited = submitter("wait", "first", "--timeout", "0", "--json")
    assert (waited.code, sum(waited.document["counts"].values())) == (124, 1)
    assert not waited.document["counts"].keys() & {"succeeded", "failed"}


def test_a_variable_gives_a_repeatable_option_a_value_a_line(
    submitter: Submitter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUBMITTER_RUN_ENV", "A=b  c\nD=e\n")
    monkeypatch.setenv("SUBMITTER_RUN_GRID", 'v="a, b",c')
    done = submitter(*ECHO[:-1], 'echo "$A $D"', "--wait", "--poll", "0.1")
    assert done.code == 0
    logged = submitter("logs", "first", "--where", 'v="a, b"').out
    assert logged == "b  c e --v a, b --seed 1\n"


def test_a_wrong_queue_is_answered_with_the_real_ones_and_nothing_is_submitted(
    submitter: Submitter, server: EmulatorServer
) -> None:
    before = len(calls(server, "batch"))
    refused = submitter("run", "--queue", "c5a-larg-spot")
    assert refused.code == 3
    assert refused.err.splitlines() == ["Error: The stack has no queue c5a-larg-spot.", f"It has {QUEUE}."]
    assert len(calls(server, "batch")) == before


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("run", "--command", "x", "--wait"), "--wait waits for runs on a queue, and none is named."),
        (("run", "--provider", "aws"), "--provider aws needs a queue to submit to."),
        ((*ECHO, "--num-seed", "0"), "--num-seed 0 asks for no run."),
        ((*ECHO, "--num-seed", "ten"), "'ten' is not a whole number."),
        (("prune", "--sweeps-older-than", "30d"), "'30d' is not a number."),
        ((*ECHO, "--seeds", "3-1"), "The range 3-1 runs backwards."),
        ((*ECHO, "--seeds", "1", "--num-seed", "2"), "--seeds already says which seeds."),
        ((*ECHO, "--num-gpu", "1"), "have no GPU."),
        ((*ECHO, "--num-memory", "4096"), "4096 MiB do not fit"),
        ((*ECHO, "--num-hours", "0.01"), "A time limit of 0.01 hours is less than"),
        ((*ECHO, "--num-vcpu", "0"), "A run needs at least 1 vCPU"),
        ((*ECHO, "--attempts", "11"), "A run cannot have 11 attempts."),
        ((*ECHO[:3], "--name", "a b"), "'a b' is not a name for a sweep."),
        ((*ECHO, "--owner", "a/b"), "'a/b' is not an owner's name."),
        ((*(*ECHO[:-1], "python train.py --seed 7"), "--num-seed", "2"), "The command has its own seed"),
        ((*ECHO, "--grid", "env-id"), "has no values"),
        ((*ECHO, "--frobnicate"), "No such option"),
        ((*ECHO, "--image="), "'' is not an image's name."),
        ((*ECHO, "--image=--privileged"), "'--privileged' is not an image's name."),
        ((*ECHO, "--name="), "'' is not a name for a sweep."),
        ((*ECHO, "--seed-flag", "a b"), "--seed-flag 'a b' is not an option's name."),
        (("build", "--image", "=bad="), "'=bad=' is not an image's name."),
        (("retry", "x", "--image", "UPPER/x"), "'UPPER/x' is not an image's name."),
        (("prune", "--sweeps-older-than", "nan"), "'nan' is not a number."),
        (("wait", "x", "--timeout", "nan"), "'nan' is not a number."),
        (("wait", "x", "--poll", "nan"), "'nan' is not a number."),
        (("status", "nothing"), "There is no sweep"),
        (("logs", "nothing"), "There is no sweep"),
        (("show", "nothing"), "There is no sweep"),
    ],
)
def test_what_cannot_work_is_one_sentence_and_changes_nothing(
    submitter: Submitter, server: EmulatorServer, arguments: tuple[str, ...], sentence: str
) -> None:
    before = len(calls(server, "batch"))
    refused = submitter(*arguments)
    assert refused.code == 2
    assert sentence in refused.err
    assert len(refused.err.splitlines()) <= 3  # what is about to be submitted, the sentence, its remedy
    assert "Traceback" not in refused.err
    assert len(calls(server, "batch")) == before


@pytest.mark.parametrize("address", ["garbage", "http://"])
def test_what_is_no_address_of_aws_is_one_sentence(
    submitter: Submitter, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", address)
    refused = submitter("list")
    assert refused.code == 3
    assert refused.err.startswith(f"Error: Invalid endpoint: {address} is no address of AWS.")


def test_lists_and_tables_are_for_people_and_json_for_scripts(submitter: Submitter) -> None:
    submitter(*ECHO)
    (listed,) = submitter("list", "--json").document["sweeps"]
    assert listed["sweep"].endswith("/first")
    assert listed["command"] == "echo trained"
    assert "first" in submitter("list").out
    shown = submitter("show", "first", "--json").document
    assert shown["command"] == "echo trained"
    assert shown["submissions"][0]["runs"] == "1"
    assert "echo trained" in submitter("show", "first").out
    (queue,) = submitter("queues", "--json").document["queues"]
    assert (queue["name"], queue["state"], queue["runs_per_instance"], queue["runs_at_once"]) == (
        QUEUE,
        "enabled",
        2,
        16,
    )
    assert QUEUE in submitter("queues").out


def test_queues_tells_of_a_queue_that_takes_no_runs_and_an_environment_that_starts_none(
    submitter: Submitter, aws: Callable[..., Any]
) -> None:
    aws("batch").update_compute_environment(computeEnvironment="spot", state="DISABLED")
    assert "  enabled, environment disabled  " in submitter("queues").out
    aws("batch").update_job_queue(jobQueue=QUEUE, state="DISABLED")
    (queue,) = submitter("queues", "--json").document["queues"]
    assert (queue["state"], queue["environment_state"]) == ("disabled", "disabled")


def test_another_accounts_credentials_are_refused_before_anything_changes(
    submitter: Submitter, tmp_path: Path, server: EmulatorServer
) -> None:
    outputs = json.loads((tmp_path / "outputs.json").read_text())
    (tmp_path / "outputs.json").write_text(json.dumps({**outputs, "account_id": "999999999999"}))
    refused = submitter(*ECHO)
    assert refused.code == 3
    assert "The stack is in account 999999999999" in refused.err
    assert "SubmitJob" not in calls(server, "batch")


def test_without_credentials_the_remedy_is_said(submitter: Submitter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    refused = submitter(*ECHO)
    assert refused.code == 3
    assert refused.err.splitlines()[-2] == "Error: There are no AWS credentials."


def test_a_command_that_waits_for_aws_says_so(
    submitter: Submitter, server: EmulatorServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("submitter.cli.connection.Watch", partial(Watch, seconds=0.1))
    server.control.faults.add(Rule(service="dynamodb", operation="Scan", kind="throttle", count=3))
    done = submitter("list")
    assert done.code == 0
    assert "AWS has not answered Scan of DynamoDB for 0.1 s, or asks for patience: waiting." in done.err.splitlines()


def test_debug_adds_the_traceback(submitter: Submitter) -> None:
    refused = submitter("--debug", "run", "--queue", "nothing")
    assert refused.code == 3
    assert "Traceback" in refused.err


def test_the_environment_variable_of_every_option_is_named_as_the_option() -> None:
    """click makes it from the parameter's name, which is therefore a spelling of the option."""
    context = click.Context(group, info_name="submitter")
    commands = [found for name in group.list_commands(context) if (found := group.get_command(context, name))]
    options = [
        (command.name, option)
        for command in (group, *commands)
        for option in command.params
        if isinstance(option, click.Option) and option.allow_from_autoenv
    ]
    assert len(options) > len(commands)
    for name, option in options:
        assert f"--{str(option.name).replace('_', '-')}" in option.opts, f"{name}: {option.opts}"


def test_options_are_taken_from_variables(submitter: Submitter, monkeypatch: pytest.MonkeyPatch) -> None:
    submitter(*ECHO, "--wait", "--poll", "0.1")
    monkeypatch.setenv("SUBMITTER_STATUS_JSON", "1")
    monkeypatch.setenv("SUBMITTER_STATUS_RUNS", "1")
    assert [run["status"] for run in submitter("status", "first").document["runs"]] == ["succeeded"]


def test_without_a_command_there_is_help_and_no_error(submitter: Submitter) -> None:
    done = submitter()
    assert done.code == 2
    assert done.err.startswith("Usage: submitter")
    assert "Error" not in done.err


def test_the_outputs_of_a_stack_that_was_made_anew_are_told_to_be_stale(submitter: Submitter, tmp_path: Path) -> None:
    outputs = json.loads((tmp_path / "outputs.json").read_text())
    (tmp_path / "outputs.json").write_text(json.dumps({**outputs, "ledger_table": "ledger-0000000"}))
    refused = submitter("status", "first")
    assert refused.code == 4
    assert "save its outputs again" in refused.err.splitlines()[-1]


def test_what_the_first_run_executes_is_said_and_a_dry_run_says_that_nothing_was_sent(submitter: Submitter) -> None:
    command = (*ECHO[:-1], "echo {env_id}", "--grid", "env-id=CartPole-v1", "--num-seed", "2")
    dry = submitter(*command, "--dry-run")
    hint, announced, first, end = dry.err.splitlines()[-4:]
    assert hint.endswith("did you mean {env-id}?")
    assert announced.startswith("first: 2 runs on c5a-large-spot")
    assert first == "The first is: echo {env_id} --env-id CartPole-v1 --seed 1"
    assert end == "Nothing was sent."
    sent = submitter(*command, "--wait", "--poll", "0.1").err.splitlines()
    assert "2 runs submitted." in sent
