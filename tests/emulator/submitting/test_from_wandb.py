"""Runs that W&B calls crashed: its own client asks a server on this machine that answers as W&B's does."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tests.emulator.submitting.json_server import reply

QUEUE = "c5a-large-spot"
Submitter = Callable[..., Any]
WaitUntil = Callable[..., Any]


@dataclass
class WandbServer:
    """The runs of the project acme/cleanrl, and what was asked."""

    url: str = ""
    runs: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The metadata of each run, by id; all of them have crashed."""
    filters: list[str] = field(default_factory=list)

    def answer(self, query: str, variables: dict[str, Any]) -> dict[str, Any]:
        """Answer one GraphQL query."""
        if "viewer" in query:
            return {"viewer": {"id": "1", "entity": "acme", "username": "ada", "flags": "{}", "teams": {"edges": []}}}
        if (variables["entity"], variables["project"]) != ("acme", "cleanrl"):
            return {"project": None}
        if "RunFiles" in query:
            found = {"id": "file", "name": "wandb-metadata.json", "sizeBytes": 1, "mimetype": "", "md5": ""}
            url = f"{self.url}/metadata/{variables['name']}"
            files = _page([{**found, "url": url, "directUrl": url, "updatedAt": "2026-01-01T00:00:00"}])
            return {"project": {"internalId": "1", "run": {"fileCount": 1, "files": files}}}
        self.filters.append(variables["filters"])
        crashed = json.loads(variables["filters"]) == {"state": "crashed"}
        runs = [_run(name) for name in self.runs if crashed]
        return {"project": {"internalId": "1", "runCount": len(runs), "readOnly": False, "runs": _page(runs)}}


def _page(nodes: list[dict[str, Any]]) -> dict[str, Any]:
    edges = [{"node": node, "cursor": str(at)} for at, node in enumerate(nodes)]
    return {"edges": edges, "pageInfo": {"endCursor": str(len(edges)), "hasNextPage": False}}


def _run(name: str) -> dict[str, Any]:
    time = "2026-01-01T00:00:00"
    texts = {"id": name, "name": name, "displayName": name, "state": "crashed", "createdAt": time, "heartbeatAt": time}
    return {**texts, "tags": [], "projectId": "1", "readOnly": False, "sweepName": None, "historyLineCount": 1}


@pytest.fixture
def wandb_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[WandbServer]:
    server = WandbServer()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if self.path != "/graphql":  # the client's own measurements
                reply(self, {})
                return
            asked = json.loads(body)
            reply(self, {"data": server.answer(asked["query"], asked.get("variables") or {})})

        def do_GET(self) -> None:
            reply(self, server.runs[self.path.rpartition("/")[2]])

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        server.url = f"http://127.0.0.1:{http.server_port}"
        thread = Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        monkeypatch.setenv("WANDB_BASE_URL", server.url)
        monkeypatch.setenv("WANDB_API_KEY", f"local-{'a' * 40}")
        monkeypatch.setenv("WANDB_SILENT", "true")
        yield server
        http.shutdown()
        thread.join()


def statuses(submitter: Submitter, name: str) -> list[str]:
    return [run["status"] for run in submitter("status", name, "--runs", "--json").document["runs"]]


def test_crashed_runs_of_a_sweep_go_on_under_their_own_ids_which_must_exist(
    submitter: Submitter, wandb_server: WandbServer, wait_until: WaitUntil, tmp_path: Path
) -> None:
    """What W&B calls crashed and AWS does not, such as a run that waits for its next attempt, is left alone."""
    mended = tmp_path / "mended"
    command = (
        f"test -e {mended} || test {{seed}} -gt 2; echo $WANDB_RUN_ID $WANDB_RESUME; test -e {mended} -o {{seed}} -gt 2"
    )
    run = ("run", "--queue", QUEUE, "--name", "exp", "--image", "trainer:1", "--no-pin", "--command", command)
    submitter(*run, "--num-seed", "3", "--attempts", "1", "--wait", "--poll", "0.1")
    assert statuses(submitter, "exp") == ["failed", "failed", "succeeded"]
    nonce = submitter("show", "exp", "--json").document["nonce"]
    wandb_server.runs = {name: {} for name in (f"{nonce}-2", f"{nonce}-3", "another")}
    mended.touch()
    (retried,) = submitter("retry", "exp", "--from-wandb", "acme/cleanrl", "--json").document["sweeps"]
    assert (retried["submitted"], retried["runs"]) == (1, "2")
    wait_until(lambda: statuses(submitter, "exp") == ["failed", "succeeded", "succeeded"])
    assert submitter("logs", "exp", "--seed", "2").out == f"{nonce}-2 must\n"
    assert json.loads(wandb_server.filters[-1]) == {"state": "crashed"}


def test_crashed_runs_that_no_sweep_has_are_run_as_wandb_knows_them(
    submitter: Submitter, wandb_server: WandbServer, wait_until: WaitUntil, tmp_path: Path
) -> None:
    program = tmp_path / "ppo.py"
    program.write_text("import os, sys\nprint(os.environ['WANDB_RUN_ID'], os.environ['WANDB_RESUME'], sys.argv[1:])\n")
    wandb_server.runs = {
        "3k2j9x1a": {"codePath": str(program), "args": ["--exp-name", "a  b's $HOME", "--seed", 1]},
        "zz-9": {"program": str(program), "args": None},
    }
    command = ("retry", "--from-wandb", "acme/cleanrl", "--state", "crashed", "--queue", QUEUE)
    done = submitter(*command, "--image", f"trainer@sha256:{'a' * 64}", "--json")
    (retried,) = done.document["sweeps"]
    assert (retried["submitted"], retried["runs"]) == (2, "1-2")
    (sweep,) = [one["sweep"] for one in submitter("list", "--json").document["sweeps"]]
    name = sweep.partition("/")[2]
    wait_until(lambda: statuses(submitter, name) == ["succeeded", "succeeded"])
    assert (
        submitter("logs", name, "--index", "1").out == "3k2j9x1a must ['--exp-name', \"a  b's $HOME\", '--seed', '1']\n"
    )
    assert submitter("logs", name, "--index", "2").out == "zz-9 must []\n"
    again = submitter(*command, "--image", f"trainer@sha256:{'a' * 64}")
    assert again.out == f"{sweep}: 0 runs submitted again.\n"
    assert len(submitter("show", name, "--json").document["submissions"]) == 1


def test_runs_of_later_attempts_are_the_sweeps_own_and_those_of_an_older_generation_nobodys(
    submitter: Submitter, wandb_server: WandbServer
) -> None:
    run = ("run", "--queue", QUEUE, "--name", "exp", "--image", "trainer:1", "--no-pin", "--wandb-retry", "new")
    fail = (*run, "--num-seed", "3", "--attempts", "1", "--command", "echo resume:$WANDB_RESUME; false {seed}")
    nonces = []
    for _ in range(2):
        submitter(*fail, "--wait", "--poll", "0.1", "--new")
        nonces.append(submitter("show", "exp", "--json").document["nonce"])
    old, new = nonces
    wandb_server.runs = {name: {} for name in (f"{old}-1", f"{old}-3-2", f"{new}-2-5", f"{new}-3-r4", f"{new}-3-r4-2")}
    done = submitter("retry", "--from-wandb", "acme/cleanrl", "--queue", QUEUE, "--json")
    (retried,) = done.document["sweeps"]
    assert (retried["submitted"], retried["runs"]) == (2, "2-3")
    assert "/exp are from before it was begun afresh" in done.err
    submitter("wait", "exp", "--poll", "0.1")
    said = submitter("logs", "exp", "--seed", "2").out
    assert said == "resume:allow\n", "an id that is new cannot have to exist"
    assert submitter("retry", "exp", "--from-wandb", "acme/cleanrl").code == 0


def test_a_run_that_wandb_does_not_know_enough_of_stops_no_other_and_limits_hold_the_second_time(
    submitter: Submitter, wandb_server: WandbServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wandb_server.runs = {"gone": {}, "there": {"program": str(tmp_path / "none.py"), "args": []}}
    monkeypatch.setenv("SUBMITTER_RUN_NUM_SEED", "3")  # about another `run`
    command = ("retry", "--from-wandb", "acme/cleanrl", "--queue", QUEUE, "--image", f"trainer@sha256:{'a' * 64}")
    first = submitter(*command, "--json")
    assert "the run gone was. It is left alone." in first.err
    (sent,) = first.document["sweeps"]
    assert sent["submitted"] == 1
    submitter("wait", sent["sweep"], "--poll", "0.1")
    (again,) = submitter(*command, "--num-memory", "777", "--num-hours", "1", "--json").document["sweeps"]
    assert again["submitted"] == 1
    assert "--memory=777m" in submitter("repro", sent["sweep"]).out


def test_a_queue_that_is_missing_is_said_before_anything_is_sent(
    submitter: Submitter, wandb_server: WandbServer
) -> None:
    run = ("run", "--queue", QUEUE, "--name", "exp", "--image", "trainer:1", "--no-pin", "--attempts", "1")
    submitter(*run, "--num-seed", "2", "--command", "false # {seed}", "--wait", "--poll", "0.1")
    shown = submitter("show", "exp", "--json").document
    wandb_server.runs = {name: {} for name in (f"{shown['nonce']}-1", "another")}
    refused = submitter("retry", "--from-wandb", "acme/cleanrl", "--json")
    assert (refused.code, refused.out, refused.err.splitlines()[-1]) == (2, "", "Name a --queue for them.")
    assert submitter("show", "exp", "--json").document == shown


def test_what_was_sent_is_told_also_when_the_next_sweep_cannot_be(
    submitter: Submitter, wandb_server: WandbServer, fault: Callable[..., None]
) -> None:
    run = ("run", "--queue", QUEUE, "--image", "trainer:1", "--no-pin", "--attempts", "1", "--num-seed", "1")
    nonces = []
    for name in ("one", "two"):
        submitter(*run, "--name", name, "--command", "false # {seed}", "--wait", "--poll", "0.1")
        nonces.append(submitter("show", name, "--json").document["nonce"])
    wandb_server.runs = {f"{nonce}-1": {} for nonce in nonces}
    fault("batch", "SubmitJob", "refuse", code="ClientException", message="no", skip=1, count=1)
    refused = submitter("retry", "--from-wandb", "acme/cleanrl", "--json")
    assert refused.code == 4
    assert [sweep["submitted"] for sweep in refused.document["sweeps"]] == [1]


def test_a_labmates_crashed_runs_are_left_alone(submitter: Submitter, wandb_server: WandbServer) -> None:
    run = ("run", "--queue", QUEUE, "--name", "exp", "--owner", "labmate", "--image", "trainer:1", "--no-pin")
    submitter(*run, "--command", "false # {seed}", "--wait", "--poll", "0.1")
    nonce = submitter("show", "labmate/exp", "--json").document["nonce"]
    wandb_server.runs = {f"{nonce}-1": {}}
    done = submitter("retry", "--from-wandb", "acme/cleanrl")
    assert (done.code, done.out) == (0, "")
    assert "labmate/exp is not yours" in done.err
    assert "1 run submitted again" in submitter("retry", "--from-wandb", "acme/cleanrl", "--force").out


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("--from-wandb", "cleanrl"), 2, "--from-wandb cleanrl does not name a project."),
        (("--from-wandb", "acme/nothing"), 3, "W&B did not list the runs of acme/nothing"),
        (("--from-wandb", "acme/cleanrl"), 2, "No sweep has 1 run of acme/cleanrl."),
        (("--from-wandb", "acme/cleanrl", "--seed", "1"), 2, "--from-wandb chooses the runs."),
        (("--from-wandb", "acme/cleanrl", "--queue", QUEUE), 3, "W&B does not know which program the run gone was."),
        ((), 2, "`retry` needs a sweep."),
    ],
)
def test_what_cannot_work_is_one_sentence(
    submitter: Submitter, wandb_server: WandbServer, arguments: tuple[str, ...], code: int, sentence: str
) -> None:
    wandb_server.runs = {"gone": {}}
    refused = submitter("retry", *arguments)
    assert refused.code == code
    assert sentence in refused.err
    assert "Traceback" not in refused.err


def test_without_a_key_nothing_is_asked(
    submitter: Submitter, wandb_server: WandbServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("WANDB_API_KEY")
    monkeypatch.setenv("NETRC", str(tmp_path / "none"))
    refused = submitter("retry", "--from-wandb", "acme/cleanrl")
    assert refused.code == 3
    assert "There is no W&B key." in refused.err
    assert not wandb_server.filters
