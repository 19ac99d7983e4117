"""How people and scripts look at runs: status, watching in place, waiting, and logs, as they are typed."""

import json
import os
import pty
import select
import signal
import subprocess
import sys
import termios
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from emulator.faults import Rule
from emulator.server import EmulatorServer
from submitter import logs

QUEUE = "c5a-large-spot"
LINK = "https://wandb.ai/lab/project/runs/"
PRINTS_LINK = 'echo "wandb: View run at https://wandb.ai/lab/project/runs/$WANDB_RUN_ID"; test {seed} != 2'
Submitter = Callable[..., Any]


def run(command: str, *more: str) -> tuple[str, ...]:
    return ("run", "--queue", QUEUE, "--name", "first", "--image", "trainer:1", "--command", command, *more)


def done(submitter: Submitter, command: str = PRINTS_LINK, *more: str) -> None:
    submitter(*run(command, "--num-seed", "3", "--attempts", "1", *more, "--wait", "--poll", "0.1"))


def test_each_run_is_told_with_times_log_and_the_link_that_it_has_printed(submitter: Submitter) -> None:
    done(submitter)
    runs = submitter("status", "first", "--runs", "--json").document["runs"]
    assert [(run["status"], run["reason"]) for run in runs] == [
        ("succeeded", None),
        ("failed", "exit code 1"),
        ("succeeded", None),
    ]
    for run in runs:
        assert run["started_at_ms"] <= run["stopped_at_ms"]
        assert run["wandb_url"] == f"{LINK}{run['run_id']}"
        assert run["log_stream"]
    header, *lines = submitter("status", "first", "--runs").out.splitlines()[1:]
    assert header.split("  ")[0] == "run"
    assert all(name in header for name in ("seed", "state", "attempt", "started", "ran for", "reason", "W&B"))
    assert runs[0]["log_stream"] not in lines[0]
    assert "failed" in lines[1]
    assert "exit code 1" in lines[1]
    assert f"{LINK}{runs[1]['run_id']}" in lines[1]


def test_chosen_runs_are_told_and_only_they_are_asked_for(submitter: Submitter, server: EmulatorServer) -> None:
    submitter(*run("exec sleep 60 # {seed}", "--num-seed", "1000"))
    server.control.record.clear()
    chosen = submitter("status", "first", "--seed", "700", "--json").document
    assert [run["seed"] for run in chosen["runs"]] == [700]
    assert sum(chosen["counts"].values()) == 1000
    made = [call.operation for call in server.control.record.calls("batch")]
    assert made == ["DescribeJobs", "DescribeJobs"]
    assert server.control.record.calls("logs") == []


def test_failed_runs_are_chosen_by_their_state(submitter: Submitter) -> None:
    done(submitter)
    assert [r["seed"] for r in submitter("status", "first", "--failed", "--json").document["runs"]] == [2]
    chosen = submitter("status", "first", "--failed")
    assert chosen.out.splitlines()[1] == "Chosen: 1 run: 1 failed"
    for command in ("status", "why", "wait"):
        assert "`submitter logs emulator/first --failed`" in submitter(command, "first").err
    assert submitter("logs", "first", "--failed").out.count("View run") == 1


def test_counts_are_one_call_and_a_query(submitter: Submitter, server: EmulatorServer) -> None:
    submitter(*run("exec sleep 60 # {seed}", "--num-seed", "1000"))
    server.control.record.clear()
    submitter("status", "first")
    operations = [call.operation for call in server.control.record.calls()]
    assert operations == ["GetCallerIdentity", "Query", "DescribeJobs"]


def test_watching_without_a_terminal_prints_a_line_whenever_the_counts_change(submitter: Submitter) -> None:
    submitter(*run("sleep 0.5; test {seed} != 2", "--num-seed", "3", "--attempts", "1"))
    watched = submitter("status", "first", "--watch", "--poll", "0.1")
    lines = watched.out.splitlines()
    assert watched.code == 0
    assert len(lines) == len(set(lines))
    assert lines[-1].endswith("first: 3 runs: 1 failed, 2 succeeded")
    assert "\x1b" not in watched.out
    again = submitter("status", "first", "--watch", "--runs", "--json").out.splitlines()
    assert [json.loads(line)["counts"] for line in again] == [{"succeeded": 2, "failed": 1}]
    assert json.loads(again[0])["schema"] == "rl-batch/status/v1"
    assert len(json.loads(again[0])["runs"]) == 3


def test_an_array_that_has_ended_is_told_by_itself_while_its_summary_lags(
    submitter: Submitter, server: EmulatorServer
) -> None:
    server.control.delay_summaries(3600)
    submitter(*run("test {seed} != 2", "--num-seed", "3", "--attempts", "1"))
    waited = submitter("wait", "first", "--json")
    assert (waited.code, waited.document["counts"]) == (1, {"succeeded": 2, "failed": 1})
    status = submitter("status", "first", "--runs", "--json").document
    assert status["counts"] == {"succeeded": 2, "failed": 1}
    assert [run["status"] for run in status["runs"]] == ["succeeded", "failed", "succeeded"]


def test_watching_chosen_runs_tells_how_many_of_them_stand_how(submitter: Submitter) -> None:
    submitter(*run("sleep 0.5; test {seed} != 2", "--num-seed", "3", "--attempts", "1"))
    watched = submitter("status", "first", "--watch", "--seed", "2", "--poll", "0.1").out.splitlines()
    lines = [line for line in watched if "runs: " in line or "run: " in line]
    assert lines[-2:] == ["emulator/first: 3 runs: 1 failed, 2 succeeded", "Chosen: 1 run: 1 failed"]
    assert all(line.startswith("Chosen: 1 run: ") for line in lines[1::2])
    assert all(line.startswith("emulator/first: 3 runs: ") for line in lines[::2])


def test_watching_runs_without_a_terminal_prints_each_that_has_changed(submitter: Submitter) -> None:
    submitter(*run("sleep 0.3; test {seed} != 2", "--num-seed", "3", "--attempts", "1"))
    lines = submitter("status", "first", "--watch", "--runs", "--poll", "0.1").out.splitlines()
    rows = [line.split()[:3] for line in lines if line.split()[0].isdecimal()]
    assert {tuple(row) for row in rows} >= {("1", "1", "succeeded"), ("2", "2", "failed"), ("3", "3", "succeeded")}
    for number in ("1", "2", "3"):
        states = [state for n, _, state in rows if n == number]
        assert len(states) == len(set(states))
    assert "exit code 1" in next(line for line in lines if "failed" in line and line.split()[0] == "2")


def test_the_log_of_an_earlier_job_of_a_run_is_read_by_its_number(submitter: Submitter) -> None:
    command = "if test {seed} = 2; then date +%s.%N; exit 3; fi"
    done(submitter, command)
    before = submitter("logs", "first", "--index", "2").out
    submitter("retry", "first", "--num-memory", "700")
    submitter("wait", "first", "--poll", "0.1")
    read = submitter("logs", "first")
    assert "Run 2 had another job before a retry: --job 1 reads what the first one has logged." in read.err.splitlines()
    assert "another job" not in submitter("logs", "first", "--index", "1").err
    newest = submitter("logs", "first", "--index", "2").out
    assert before != newest
    assert submitter("logs", "first", "--index", "2", "--job", "1").out == before
    assert submitter("logs", "first", "--index", "2", "--job", "2").out == newest
    assert "There is no job 2: the run has had 1." in submitter("logs", "first", "--index", "1", "--job", "2").err
    runs = submitter("status", "first", "--runs", "--json").document["runs"]
    assert [run["jobs"] for run in runs] == [1, 2, 1]
    assert "job" in submitter("status", "first", "--runs").out.splitlines()[1].split()
    assert "job" not in submitter("status", "first", "--index", "1").out.splitlines()[2].split()
    submissions = submitter("show", "first", "--json").document["submissions"]
    assert [(each["spec"]["memory_mib"], each["spec"]["attempts"]) for each in submissions][1] == (700, 1)
    lines = submitter("show", "first").out.splitlines()
    assert "1 vCPU, 700 MiB, 1 attempt, 16 h 00 min each, trainer:1" in lines[-1]


def test_the_variables_of_each_submission_are_shown(submitter: Submitter) -> None:
    submitter(*run("echo {seed}", "--num-seed", "1", "--env", "FOO=bar"))
    submitter(*run("echo {seed}", "--num-seed", "2", "--env", "FOO=b a z"))
    submissions = submitter("show", "first", "--json").document["submissions"]
    assert [each["spec"]["environment"]["FOO"] for each in submissions] == ["bar", "b a z"]
    assert submitter("show", "first").out.splitlines()[-1].endswith(", 'FOO=b a z'")


@pytest.fixture
def typed(submitter: Submitter) -> Callable[..., list[str]]:
    """The command line of a process of its own, in the environment that `submitter` has."""
    del submitter
    return lambda *arguments: [sys.executable, "-m", "submitter", *arguments]


@pytest.mark.parametrize("arguments", [("logs", "first"), ("status", "first"), ("--help",)])
def test_a_reader_that_goes_away_is_no_failure_of_the_runs(
    submitter: Submitter, typed: Callable[..., list[str]], arguments: tuple[str, ...]
) -> None:
    done(submitter, "echo {seed}")
    ours, theirs = os.pipe()
    os.close(ours)
    process = subprocess.run(typed(*arguments), stdout=theirs, stderr=subprocess.PIPE, text=True, check=False)
    os.close(theirs)
    assert (process.returncode, process.stderr) == (141, "")


@pytest.mark.parametrize(
    ("encoding", "written"), [("latin-1", b"1 \\u2713\n"), ("ascii", "1 ✓\n".encode())], ids=["latin-1", "ascii"]
)
def test_what_the_output_cannot_hold_is_written_as_its_code(
    submitter: Submitter, typed: Callable[..., list[str]], encoding: str, written: bytes
) -> None:
    """An output that is said to be ASCII is taken by click for a machine that nobody has set up, and gets UTF-8."""
    done(submitter, "echo {seed} ✓")
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    process = subprocess.run(typed("logs", "first", "--index", "1"), env=environment, capture_output=True, check=True)
    assert process.stdout == written


def read_until(terminal: int, text: str) -> str:
    seen = b""
    while text.encode() not in seen:
        assert select.select([terminal], [], [], 60)[0], f"{text!r} is not shown: {seen!r}"
        seen += os.read(terminal, 4096)
    return seen.decode()


def test_watching_on_a_terminal_draws_over_itself_and_ctrl_c_leaves_the_terminal_as_it_was(
    submitter: Submitter, typed: Callable[..., list[str]]
) -> None:
    submitter(*run("exec sleep 60 # {seed}", "--num-seed", "3"))
    ours, theirs = pty.openpty()
    before = termios.tcgetattr(theirs)
    process = subprocess.Popen(
        typed("status", "first", "--watch", "--index", "2", "--poll", "0.1"),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    assert "Chosen: 1 run: 1 " in read_until(ours, "\x1b[J")
    read_until(ours, "running")
    read_until(ours, "A\r")
    process.send_signal(signal.SIGINT)
    assert "\x1b[?" not in read_until(ours, "The runs go on")
    assert process.wait(timeout=60) == 130
    assert termios.tcgetattr(theirs) == before
    os.close(ours)
    os.close(theirs)


def test_ctrl_c_while_waiting_says_that_the_runs_go_on_and_they_do(
    submitter: Submitter, typed: Callable[..., list[str]]
) -> None:
    submitter(*run("exec sleep 60 # {seed}", "--num-seed", "2"))
    process = subprocess.Popen(typed("wait", "first", "--poll", "0.1"), stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    assert "2 runs" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "The runs go on; `submitter status emulator/first`" in said
    assert "Traceback" not in said
    assert set(submitter("status", "first", "--json").document["counts"]) <= {"running", "starting"}


def test_ctrl_c_while_run_waits_tells_in_the_document_what_was_submitted(
    submitter: Submitter, typed: Callable[..., list[str]]
) -> None:
    line = run("exec sleep 60 # {seed}", "--num-seed", "2", "--wait", "--poll", "0.1", "--json")
    process = subprocess.Popen(typed(*line), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    while "2 runs: " not in process.stderr.readline():
        pass
    process.send_signal(signal.SIGINT)
    told, _ = process.communicate(timeout=60)
    assert (process.returncode, json.loads(told)["submitted"]) == (130, 2)
    submitter("cancel", "first", "--yes")


def test_waiting_stops_at_the_first_failure_on_request(submitter: Submitter) -> None:
    submitter(*run("test {seed} != 2 && exec sleep 60", "--num-seed", "2", "--attempts", "1"))
    waited = submitter("wait", "first", "--fail-fast", "--poll", "0.1")
    assert waited.code == 1
    assert "1 failed" in waited.err


def test_expired_credentials_while_waiting_are_told_with_how_to_log_in(
    submitter: Submitter, server: EmulatorServer
) -> None:
    done(submitter, "echo {seed}")
    server.control.faults.add(Rule(service="dynamodb", operation="Query", kind="expired", count=1))
    waited = submitter("wait", "first", "--poll", "0.1")
    assert waited.code == 0
    assert "Log in again in another terminal (`aws sso login`" in waited.err


def test_logs_of_several_runs_have_prefixes_also_when_they_are_followed(
    submitter: Submitter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "_SHOWN_SECONDS", 0)  # by the real clock, and nothing is late here
    submitter(*run("for n in 1 2; do echo {seed}.$n; sleep 0.2; done", "--num-seed", "2"))
    lines = submitter("logs", "first", "-f").out.splitlines()
    for seed in (1, 2):
        assert [line for line in lines if f"seed={seed}" in line] == [f"seed={seed} | {seed}.{n}" for n in (1, 2)]
    assert len(lines) == 4
    assert submitter("logs", "first", "--seed", "1", "--grep", "2$").out == "1.2\n"
    assert submitter("logs", "first", "--seed", "1", "--tail", "1").out == "1.2\n"
    assert submitter("logs", "first", "--since", "1h", "--attempt", "1", "--index", "1").out == "1.1\n1.2\n"


def test_logs_are_written_into_a_file_for_each_run(submitter: Submitter, tmp_path: Path) -> None:
    done(submitter, "echo {env-id} says {seed}", "--grid", "env-id=a/b,c")
    folder = tmp_path / "logs"
    written = submitter("logs", "first", "--output", str(folder))
    assert written.out == ""
    assert written.err == f"6 logs written into {folder}.\n"
    assert {file.name: file.read_text() for file in folder.iterdir()} == {
        f"{number:05}-env-id={name.replace('/', '_')}_seed={seed}.log": f"{name} says {seed}\n"
        for number, (seed, name) in enumerate(((s, n) for s in (1, 2, 3) for n in ("a/b", "c")), 1)
    }


def test_following_into_files_keeps_one_of_them_open(
    submitter: Submitter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else some hundred runs are more files than a process may have open."""
    monkeypatch.setattr(logs, "_SHOWN_SECONDS", 0)
    submitter(*run("for n in 1 2 3; do echo {seed}.$n; sleep 0.1; done", "--num-seed", "2"))
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "00001-seed=1.log").write_text("of yesterday\n")
    most, open_file = 0, Path.open

    def counting(self: Path, *arguments: Any, **options: Any) -> Any:
        nonlocal most
        most = max(most, sum(link.resolve().parent == tmp_path / "logs" for link in Path("/proc/self/fd").iterdir()))
        return open_file(self, *arguments, **options)

    monkeypatch.setattr(Path, "open", counting)
    assert submitter("logs", "first", "-f", "--output", str(tmp_path / "logs")).err.startswith("2 logs written")
    for seed in (1, 2):
        written = (tmp_path / "logs" / f"{seed:05}-seed={seed}.log").read_text()
        assert written == "".join(f"{seed}.{n}\n" for n in (1, 2, 3))
    assert most == 0


@pytest.mark.parametrize("folder", ["{tmp}/file/x", "{tmp}/file", "/proc/there-is-none"])
def test_a_folder_that_cannot_be_written_is_one_sentence(submitter: Submitter, tmp_path: Path, folder: str) -> None:
    submitter(*run("echo {seed}"))
    (tmp_path / "file").touch()
    folder = folder.format(tmp=tmp_path)
    refused = submitter("logs", "first", "--output", folder)
    assert refused.code == 2
    assert folder in refused.err
    assert "Traceback" not in refused.err


def test_logs_are_followed_through_expired_credentials(submitter: Submitter, server: EmulatorServer) -> None:
    submitter(*run("echo {seed}"))
    server.control.faults.add(Rule(service="logs", operation="GetLogEvents", kind="expired", count=1))
    followed = submitter("logs", "first", "-f")
    assert (followed.code, followed.out) == (0, "1\n")
    assert "Log in again in another terminal (`aws sso login`" in followed.err
    server.control.faults.add(Rule(service="logs", operation="GetLogEvents", kind="expired", count=1))
    assert submitter("logs", "first").code == 3


def test_more_lines_than_a_machine_counts_are_all(submitter: Submitter) -> None:
    done(submitter, "echo {seed}")
    assert submitter("logs", "first", "--index", "1", "--tail", "9" * 30, "--grep", "").out == "1\n"


@pytest.mark.parametrize(
    ("option", "value", "sentence"),
    [
        ("--since", "yesterday", "'yesterday' is neither a span nor a time."),
        ("--since", "1960-01-01", "--since 1960-01-01 is before 1970."),
        ("--seed", "9" * 5000, "is too large."),
        ("--grep", "(", "--grep ( is no regular expression"),
        ("--tail", "0", "Invalid value for '--tail'"),
        ("--where", "lr=1", "--where lr=1 does not name a parameter"),
    ],
)
def test_what_makes_no_sense_is_one_sentence(submitter: Submitter, option: str, value: str, sentence: str) -> None:
    done(submitter, "echo {seed}")
    refused = submitter("logs", "first", option, value)
    assert refused.code == 2
    assert sentence in refused.err
    assert "Traceback" not in refused.err


def test_runs_without_a_log_are_told_why_on_standard_error(submitter: Submitter, server: EmulatorServer) -> None:
    server.control.set_capacity("spot", available=False)
    submitter(*run("echo {seed}", "--num-seed", "2"))
    nothing = submitter("logs", "first")
    assert (nothing.code, nothing.out) == (0, "")
    assert "seed=1 | There is no log yet, the run is runnable: CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY" in nothing.err


def test_a_sweep_is_shown_from_the_ledger_alone_a_year_later(submitter: Submitter, server: EmulatorServer) -> None:
    done(submitter, "echo {env-id} {seed}", "--grid", "env-id=a,b")
    server.control.advance(365 * 86_400)
    server.control.record.clear()
    shown = submitter("show", "first", "--json").document
    assert server.control.record.calls("batch") == []
    assert (shown["owner"], shown["command"], shown["image"]) == ("emulator", "echo {env-id} {seed}", "trainer:1")
    assert (shown["values"], shown["seeds"], shown["runs"]) == ({"env-id": ["a", "b"]}, "1-3", 6)
    assert {"commit", "dirty", "digest"} <= set(shown)
    assert [(entry["kind"], entry["runs"]) for entry in shown["submissions"]] == [("run", "1-6")]
    assert shown["blocks"] == [{"runs": "1-6", "rows": [{"env-id": "a"}, {"env-id": "b"}], "seeds": "1-3"}]
    assert "num_seed" not in shown["options"]
    text = submitter("show", "first").out
    assert "values:     env-id=a|b" in text
    assert "seeds:      1-3" in text
    assert submitter("status", "first", "--json").document["counts"] == {"succeeded": 6}
    definition = shown["submissions"][0]["definition"]
    assert f"--log-stream-name-prefix {definition}/default/`" in submitter("logs", "first", "--index", "1").err


def test_sweeps_of_others_are_listed_on_request(submitter: Submitter) -> None:
    submitter(*run("echo {seed}"))
    submitter(*run("echo {seed}"), "--owner", "bob")
    assert [s["sweep"] for s in submitter("list", "--json").document["sweeps"]] == ["emulator/first"]
    assert submitter("list", "--mine", "--json").out == submitter("list", "--json").out
    assert {s["sweep"] for s in submitter("list", "--all", "--json").document["sweeps"]} == {
        "emulator/first",
        "bob/first",
    }


def test_commands_and_options_are_completed(typed: Callable[..., list[str]]) -> None:
    environment = {**os.environ, "_SUBMITTER_COMPLETE": "bash_complete", "COMP_WORDS": "submitter w", "COMP_CWORD": "1"}
    completed = subprocess.run(typed(), env=environment, capture_output=True, text=True, check=True)
    assert completed.stdout.split() == ["plain,why", "plain,wait"]


def test_seeds_are_shown_in_the_order_in_which_they_number_the_runs(submitter: Submitter) -> None:
    submitter(*run("echo {seed}", "--seeds", "9,1-3"))
    shown = submitter("show", "first", "--json").document
    assert (shown["seeds"], shown["blocks"][0]["seeds"]) == ("9,1-3", "9,1-3")


def test_a_list_without_sweeps_says_so(submitter: Submitter) -> None:
    listed = submitter("list")
    assert (listed.code, listed.out, listed.err) == (0, "", "You have no sweep yet; --all lists those of everybody.\n")
    assert submitter("list", "--all").err == "There is no sweep yet.\n"
    assert submitter("list", "--json").document["sweeps"] == []


def test_the_runs_of_a_file_are_shown_row_by_row(submitter: Submitter, tmp_path: Path) -> None:
    (tmp_path / "runs.csv").write_text("lr,env-id,seed\n0.1,a,1\n0.2,b,1\n0.1,a,2\n")
    submitter(*run("echo"), "--params", str(tmp_path / "runs.csv"))
    assert submitter("show", "first", "--json").document["blocks"] == [
        {"runs": "1-2", "rows": [{"lr": "0.1", "env-id": "a"}, {"lr": "0.2", "env-id": "b"}], "seeds": "1"},
        {"runs": "3", "rows": [{"lr": "0.1", "env-id": "a"}], "seeds": "2"},
    ]
    lines = submitter("show", "first").out.splitlines()
    at = lines.index("runs 1-2, seeds 1:")
    assert lines[at : at + 5] == [
        "runs 1-2, seeds 1:",
        "  lr=0.1 env-id=a",
        "  lr=0.2 env-id=b",
        "runs 3, seeds 2:",
        "  lr=0.1 env-id=a",
    ]


def test_a_sweep_without_seeds_shows_none(submitter: Submitter) -> None:
    submitter(*run("echo agent"), "--no-seed", "--num-jobs", "2", "--wait", "--poll", "0.1")
    runs = submitter("status", "first", "--runs", "--json").document["runs"]
    assert [(run["number"], run["seed"]) for run in runs] == [(1, None), (2, None)]
    assert "seed" not in submitter("status", "first", "--runs").out
    assert sorted(submitter("logs", "first").out.splitlines()) == ["run=1 | agent", "run=2 | agent"]
    assert [json.loads(line)["seed"] for line in submitter("logs", "first", "--json").out.splitlines()] == [None] * 2
    for command in ("status", "logs", "repro", "retry"):
        refused = submitter(command, "first", "--seed", "2")
        assert (refused.code, "The runs of the sweep have no seed." in refused.err) == (2, True)
    assert "Choose with --index or --where among: 1, 2." in submitter("repro", "first").err
    assert submitter("repro", "first", "--index", "2", "--json").document["seed"] is None


def test_runs_that_never_started_have_no_attempt_in_the_table(submitter: Submitter, server: EmulatorServer) -> None:
    server.control.set_capacity("spot", available=False)
    submitter(*run("echo {seed}"))
    assert submitter("status", "first", "--runs").out.splitlines()[2].split()[3] == "-"


def test_how_runs_stand_at_the_end_is_told_once(submitter: Submitter) -> None:
    done(submitter)
    waited = submitter("wait", "first")
    assert waited.out == "emulator/first: 3 runs: 1 failed, 2 succeeded\n"
    assert "3 runs" not in waited.err


def test_an_output_that_is_full_is_one_sentence(submitter: Submitter, typed: Callable[..., list[str]]) -> None:
    done(submitter, "echo {seed}")
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        process = subprocess.run(typed("logs", "first"), stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert process.returncode == 3
    assert process.stderr.startswith("Error: Standard output cannot be written to: No space left on device.")
    assert "Traceback" not in process.stderr
