"""What `run` takes, tells and refuses."""

import io
import json
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import botocore.session
import pytest
from botocore.validate import ParamValidator

from emulator.faults import Kind, Rule
from emulator.server import EmulatorServer
from submitter import plan
from submitter.batch import Batch
from submitter.session import client_config

QUEUE = "c5a-large-spot"
ECHO = ("run", "--queue", QUEUE, "--name", "first", "--image", "trainer:1", "--command", "echo trained")
Submitter = Callable[..., Any]


def mutating_calls(server: EmulatorServer) -> list[str]:
    """Every call so far that changed something, by operation."""
    looks = ("Get", "Describe", "List", "Query", "Scan")
    calls = (call.operation for service in ("batch", "dynamodb") for call in server.control.record.calls(service))
    return [operation for operation in calls if not operation.startswith(looks)]


def logged(submitter: Submitter, *options: str) -> list[str]:
    """Run a sweep to its end and return what its runs have printed."""
    done = submitter(*options, "--wait", "--poll", "0.1")
    assert done.code == 0, done.err
    return sorted(line.rpartition(" | ")[2] for line in submitter("logs", "first").out.splitlines())


def test_rows_of_a_file_are_runs_with_the_values_as_they_are_written(submitter: Submitter, tmp_path: Path) -> None:
    file = tmp_path / "runs.jsonl"
    file.write_text(json.dumps({"lr": "1e-3", "x": "a, 'b' \"c\" {d}"}) + '\n{"lr": 0.50, "x": "$HOME"}\n')
    command = ("run", "--queue", QUEUE, "--name", "first", "--command", "printf '[%s]' {lr} {x}; echo", "--no-seed")
    assert logged(submitter, *command, "--params", str(file)) == ["[0.50][$HOME]", "[1e-3][a, 'b' \"c\" {d}]"]
    shown = submitter("show", "first", "--json").document
    assert shown["options"]["params"] == str(file)


def test_a_file_may_come_by_standard_input(submitter: Submitter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"seed,lr\n7,0.1\n8,0.2\n")))
    assert logged(submitter, *ECHO, "--params", "-") == ["trained --lr 0.1 --seed 7", "trained --lr 0.2 --seed 8"]


def test_equal_jobs_are_agents_without_a_run_id(submitter: Submitter) -> None:
    command = ("run", "--queue", QUEUE, "--name", "first", "--command", 'echo "agent$WANDB_RUN_ID"')
    assert logged(submitter, *command, "--no-seed", "--num-jobs", "3") == ["agent"] * 3
    more = submitter(*command, "--no-seed", "--num-jobs", "5", "--json").document
    assert (more["submitted"], more["already"]) == (2, 3)
    refused = submitter(*command, "--num-seed", "5")
    assert refused.code == 2
    assert refused.err.splitlines()[-2].endswith("was begun with --no-seed 'yes', not 'no'.")


def test_variables_and_tags_reach_the_jobs(submitter: Submitter, aws: Callable[..., Any]) -> None:
    command = ("run", "--queue", QUEUE, "--name", "first", "--command", 'echo "$A|$WANDB_PROJECT"')
    options = ("--no-seed", "--env", "A=b c", "--env", "WANDB_PROJECT=x", "--tag", "project=exploration")
    assert logged(submitter, *command, *options) == ["b c|x"]
    (job,) = submitter("show", "first", "--json").document["submissions"][0]["jobs"].values()
    (described,) = aws("batch").describe_jobs(jobs=[job])["jobs"]
    assert described["tags"]["project"] == "exploration"
    assert described["tags"]["rl-batch:sweep"].endswith("/first")


def test_options_that_differ_from_the_record_are_used_and_said(submitter: Submitter) -> None:
    submitter(*ECHO, "--num-hours", "8")
    more = submitter(*ECHO, "--num-seed", "2", "--attempts", "1", "--num-hours", "8")
    assert "The sweep was begun with no --attempts; 1 run submitted now: --attempts 1." in more.err
    nothing = submitter(*ECHO, "--num-hours", "4")
    assert (
        "Nothing is submitted, so --num-hours 4 changes nothing; the sweep was begun with --num-hours 8." in nothing.err
    )


def test_failed_runs_are_told_with_the_way_to_run_them_again(submitter: Submitter) -> None:
    command = (*ECHO[:-1], "test {seed} = 1", "--num-seed", "3", "--attempts", "1")
    assert submitter(*command, "--wait", "--poll", "0.1").code == 1
    again = submitter(*command)
    assert again.code == 0
    assert again.out.splitlines()[-1] == "3 runs: 2 failed, 1 succeeded"
    assert again.err.splitlines()[-1].startswith("`submitter retry ")
    assert again.err.splitlines()[-1].endswith("/first` runs the 2 again.")


def test_another_sweeps_runs_and_options_are_taken_but_for_those_typed(submitter: Submitter) -> None:
    grid = ("--grid", "env-id=CartPole-v1")
    submitter(*ECHO, *grid, "--seeds", "3,5", "--num-hours", "2", "--num-memory", "512", "--env", "A=1")
    submitter(*ECHO, "--grid", "env-id=Acrobot-v1", "--seeds", "5")
    like = submitter(
        "run", "--like", "first", "--name", "second", "--image", "trainer:2", "--num-memory", "256", "--json"
    )
    assert like.code == 0, like.err
    assert like.document["submitted"] == 3
    shown = submitter("show", "second", "--json").document
    assert (shown["image"], shown["command"]) == ("trainer:2", "echo trained")
    assert {name: shown["options"].get(name) for name in ("queue", "num_hours", "num_memory", "env")} == {
        "queue": QUEUE,
        "num_hours": 2,
        "num_memory": 256,
        "env": ["A=1"],
    }
    runs = submitter("status", "second", "--runs", "--json").document["runs"]
    assert [(run["params"]["env-id"], run["seed"]) for run in runs] == [
        ("CartPole-v1", 3),
        ("CartPole-v1", 5),
        ("Acrobot-v1", 5),
    ]


def test_more_equal_jobs_of_a_sweep_without_seeds_are_asked_for_by_their_number_alone(submitter: Submitter) -> None:
    submitter(*ECHO, "--no-seed", "--num-jobs", "2")
    like = submitter("run", "--like", "first", "--name", "second", "--num-jobs", "5", "--json")
    assert like.code == 0, like.err
    assert like.document["submitted"] == 5
    assert submitter("show", "second", "--json").document["options"]["no_seed"] is True


@pytest.mark.parametrize("more", [(), ("--dry-run",)])
def test_more_runs_than_an_entry_can_hold_are_refused_before_it_is_made(
    submitter: Submitter, monkeypatch: pytest.MonkeyPatch, more: tuple[str, ...]
) -> None:
    monkeypatch.delattr("submitter.submission.arrays")
    refused = submitter(*ECHO, "--num-seed", "50001", *more)
    assert refused.code == 2
    assert "50,001 runs do not fit one entry of the ledger, which has room for 50,000 at most." in refused.err


def test_a_dry_run_prints_what_run_then_sends_and_changes_nothing(
    submitter: Submitter, server: EmulatorServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    submitter(*ECHO, "--num-seed", "2")
    before = mutating_calls(server)
    line = (*ECHO, "--num-seed", "4", "--env", "A=1", "--num-hours", "2")
    dry = submitter(*line, "--dry-run").document
    assert mutating_calls(server) == before
    assert (dry["submitted"], dry["already"]) == (2, 2)
    assert [request["operation"] for request in dry["requests"]] == [
        "TransactWriteItems",
        "RegisterJobDefinition",
        "SubmitJob",
    ]
    for request in dry["requests"]:
        model = botocore.session.get_session().get_service_model(request["service"])
        shape = model.operation_model(request["operation"]).input_shape
        assert shape is not None
        assert not ParamValidator().validate(request["parameters"], shape).has_errors()

    sent = []
    submit = Batch.submit

    def recorded(batch: Batch, request: Mapping[str, Any], *, sign_until: float) -> Any:
        sent.append(request)
        return submit(batch, request, sign_until=sign_until)

    monkeypatch.setattr(Batch, "submit", recorded)
    submitter(*line)
    assert [request["parameters"] for request in dry["requests"] if request["operation"] == "SubmitJob"] == sent


def test_a_dry_run_needs_no_credentials(submitter: Submitter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, "/dev/null")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    dry = submitter(*ECHO, "--num-seed", "2", "--dry-run")
    assert dry.code == 0, dry.err
    assert "Unable to locate credentials" in dry.err
    assert dry.document["sweep"] == "OWNER/first"
    assert dry.document["requests"][-1]["parameters"]["arrayProperties"] == {"size": 2}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((*ECHO, "--num-seeds", "3"), "No such option: --num-seeds. Here it is --num-seed 3."),
        ((*ECHO, "--num-seeds=3"), "No such option: --num-seeds. Here it is --num-seed 3."),
        ((*ECHO, "--env-ids", "A-v1", "B-v1", "--wait"), "Here it is --grid env-id=A-v1,B-v1."),
        ((*ECHO, "--env", "WANDB_API_KEY=sentinel"), "--env would show WANDB_API_KEY to all who may look at jobs."),
        ((*ECHO, "--tag", "x"), "--tag x is not a name and a value."),
        ((*ECHO, "--params", "nowhere.csv"), "Cannot read nowhere.csv: No such file or directory."),
        ((*ECHO, "--num-jobs", "3"), "--num-jobs is for commands without a seed."),
        ((*ECHO, "--like", "nothing"), "There is no sweep"),
    ],
)
def test_what_is_spelt_otherwise_or_cannot_work_is_answered_and_changes_nothing(
    submitter: Submitter, server: EmulatorServer, arguments: tuple[str, ...], sentence: str
) -> None:
    before = mutating_calls(server)
    refused = submitter(*arguments)
    assert refused.code == 2
    assert sentence in refused.err
    assert "sentinel" not in refused.err
    assert mutating_calls(server) == before


def test_what_is_about_to_be_submitted_is_told_exactly(submitter: Submitter, server: EmulatorServer) -> None:
    def announced(*more: str) -> str:
        lines: list[str] = submitter(*ECHO, *more).err.splitlines()
        (line,) = (line for line in lines if line.startswith("first: "))
        return line.partition("; ")[0]

    assert announced("--num-seed", "3") == "first: 3 runs on c5a-large-spot, 3 at once"
    assert announced("--num-seed", "5") == "first: 2 more runs on c5a-large-spot (3 are submitted already), 2 at once"
    submitter("wait", "first", "--poll", "0.1")
    submitter("cancel", "first", "--seed", "5", "--yes")
    before = mutating_calls(server)
    assert announced("--seeds", "1-3") == "first: nothing to submit: of 3 runs, 3 are submitted already."
    assert mutating_calls(server) == before, "what needs nothing changes nothing"


@pytest.mark.parametrize(("hours", "told"), [("0.02", "0.12"), ("0.5", "3"), ("16", "96"), ("400", "2,400")])
def test_the_ceiling_is_told_however_low_it_is(submitter: Submitter, hours: str, told: str) -> None:
    assert f": {told} run-hours are the ceiling." in submitter(*ECHO, "--num-hours", hours, "--dry-run").err


def test_runs_that_were_cancelled_are_left_alone_and_told(submitter: Submitter) -> None:
    sleeping = (*ECHO[:-1], "exec sleep 600 # {seed}")
    submitter(*sleeping, "--num-seed", "3")
    assert submitter("cancel", "first", "--seed", "2", "--yes").code == 0
    left = "first: nothing to submit: of 3 runs, 2 are submitted already and 1 is cancelled, for `submitter retry`."
    assert left in submitter(*sleeping, "--num-seed", "3").err.splitlines()


@pytest.mark.parametrize(
    ("service", "operation", "kind", "skip", "sentence", "submitted"),
    [
        ("batch", "SubmitJob", "refuse", 2, "Error: AWS refused SubmitJob (ClientException): Queue is DISABLED", 4),
        ("dynamodb", "UpdateItem", "error", 0, "Error: AWS failed at UpdateItem (InternalFailure)", 6),
        ("batch", "RegisterJobDefinition", "refuse", 0, "Error: AWS refused RegisterJobDefinition", 0),
    ],
)
def test_a_run_that_is_refused_half_way_says_what_it_has_submitted_and_how_to_go_on(  # noqa: PLR0917 - fixtures
    submitter: Submitter,
    server: EmulatorServer,
    monkeypatch: pytest.MonkeyPatch,
    service: str,
    operation: str,
    kind: Kind,
    skip: int,
    sentence: str,
    submitted: int,
) -> None:
    monkeypatch.setattr(plan, "MAX_ARRAY", 2)
    monkeypatch.setattr("submitter.ledger.client_config", partial(client_config, attempts=1))
    rule = Rule(service=service, operation=operation, kind=kind, skip=skip)
    rule.code, rule.message = "ClientException", "Queue is DISABLED"
    server.control.faults.add(rule)
    refused = submitter(*ECHO, "--num-seed", "6")
    error, remedy = refused.err.splitlines()[-2:]
    assert (refused.code, error.startswith(sentence)) == (4, True), error
    assert remedy.startswith(f"{submitted} of 6 runs were submitted. ")
    assert "ype the same command again" in remedy
    server.control.faults.clear()
    assert submitter(*ECHO, "--num-seed", "6").code == 0
    assert len(server.control.record.calls("batch", "SubmitJob")) == 3 + (skip > 0)


def test_what_is_not_known_to_be_submitted_is_not_said_to_be(
    submitter: Submitter, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_: Batch, request: Mapping[str, Any], *, sign_until: float) -> Any:  # noqa: ARG001
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Batch, "submit", interrupted)
        broken_off = submitter(*ECHO, "--num-seed", "2")
    counted = "0 of 2 runs were submitted, of 2 it is not known yet. The same command sends what is left"
    assert (broken_off.code, counted in broken_off.err) == (130, True)
    dry = submitter(*ECHO, "--num-seed", "2", "--dry-run")
    assert "first: of 2 runs, 2 are perhaps submitted, which is looked up first." in dry.err.splitlines()
    more = submitter(*ECHO, "--num-seed", "3", "--dry-run")
    assert "first: 1 more run on c5a-large-spot (2 are perhaps submitted, which is looked up first)" in more.err


def test_a_sweep_of_which_nothing_was_ever_sent_does_not_bind_what_is_meant_by_its_name(
    submitter: Submitter, server: EmulatorServer
) -> None:
    rule = Rule(service="batch", operation="SubmitJob", kind="refuse", count=1, code="ClientException", message="no")
    server.control.faults.add(rule)
    assert submitter(*ECHO, "--num-seed", "2").code == 4
    other = (*ECHO[:-1], "echo something else")
    dry = submitter(*other, "--num-seed", "3", "--dry-run")
    assert (dry.code, dry.document["submitted"]) == (0, 3)
    begun = submitter(*other, "--num-seed", "3", "--json")
    assert "was ever submitted, so it begins afresh." in begun.err
    assert begun.document["submitted"] == 3
    shown = submitter("show", "first", "--json").document
    assert shown["command"] == "echo something else"
    refused = submitter(*ECHO, "--num-seed", "2")
    assert (refused.code, "was begun with the command 'echo something else'" in refused.err) == (2, True)


def test_beginning_afresh_tells_how_many_runs_of_before_go_on(submitter: Submitter) -> None:
    sleeping = (*ECHO[:-1], "exec sleep 600 # {seed}")
    submitter(*sleeping, "--num-seed", "3")
    told = "From before --new 3 runs of the sweep have not ended, and will go on beside the new ones"
    assert told in submitter(*sleeping, "--new").err
    assert "From before --new 4 runs of the sweep have not ended" in submitter(*sleeping, "--new").err
    assert submitter("cancel", "first", "--yes").code == 0
    assert submitter("wait", "first", "--poll", "0.1").code == 1
    assert "From before" not in submitter(*sleeping, "--new").err
    submitter("cancel", "first", "--yes")
