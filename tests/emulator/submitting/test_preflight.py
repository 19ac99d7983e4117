"""What is looked at before the first call that changes anything, and how a queue's users share it."""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from emulator.server import EmulatorServer
from infra.outputs import Queue, StackOutputs

SPOT = "c5a-large-spot"
Submitter = Callable[..., Any]


@pytest.fixture
def contract(contract: StackOutputs, aws: Callable[..., Any], queue: Callable[..., dict[str, Any]]) -> StackOutputs:
    """A stack with an ARM queue and a fair-share queue beside the usual one."""
    policy = aws("batch").create_scheduling_policy(name="fair", fairsharePolicy={})["arn"]
    usual = contract.queues[SPOT]
    arm: dict[str, Any] = {"instance_type": "c6g.medium", "vcpus": 1, "memory_mib": 2048, "architecture": "arm64"}
    queues: dict[str, Queue] = {
        SPOT: usual,
        "c6g-medium": replace(usual, name="c6g-medium", purchase="on-demand", **arm),
        "shared": replace(usual, name="shared", fair_share=True),
        "tiny": replace(usual, name="tiny", max_vcpus=1),
    }
    queue("c6g-medium", instance_type="c6g.medium")
    queue("shared", schedulingPolicyArn=policy)
    return replace(contract, queues=queues, queue_names=tuple(sorted(queues)))


@pytest.fixture(autouse=True)
def _registries_are_asked(monkeypatch: pytest.MonkeyPatch, submitter: Submitter) -> None:  # noqa: ARG001 - which sets it
    monkeypatch.delenv("SUBMITTER_RUN_PIN")


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Put a docker on PATH that finds such an image in its registry: `registry("amd64", entrypoint=["python"])`."""

    def make(*architectures: str, entrypoint: list[str] | None = None) -> None:
        digest = f"sha256:{'0' * 64}"
        config = {"config": {"Entrypoint": entrypoint}}
        found: dict[str, Any] = {
            "manifest": {
                "digest": digest,
                "manifests": [
                    {"platform": {"os": "linux", "architecture": name}} for name in (*architectures, "unknown")
                ],
            },
            "image": {f"linux/{name}": {"architecture": name, **config} for name in architectures},
        }
        (tmp_path / "found.json").write_text(json.dumps(found))
        docker = tmp_path / "docker"
        docker.write_text(f"#!/bin/sh\ncat '{tmp_path}/found.json'\n")
        docker.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    return make


def run(submitter: Submitter, queue: str, *more: str, command: str = "true") -> Any:
    return submitter("run", "--queue", queue, "--name", "first", "--image", "trainer:1", "--command", command, *more)


def changes(server: EmulatorServer) -> list[str]:
    looks = ("Get", "Describe", "List", "Query", "Scan")
    services = ("batch", "dynamodb", "secretsmanager")
    found = (call.operation for service in services for call in server.control.record.calls(service))
    return [operation for operation in found if not operation.startswith(looks)]


def test_an_image_for_another_architecture_is_refused_before_anything_is_changed(
    submitter: Submitter, server: EmulatorServer, registry: Callable[..., None]
) -> None:
    registry("amd64")
    before = changes(server)
    refused = run(submitter, "c6g-medium")
    assert refused.code == 2
    assert "trainer:1 is for x86_64, and the instances of c6g-medium are arm64." in refused.err
    assert changes(server) == before
    registry("amd64", "arm64")
    assert run(submitter, "c6g-medium").code == 0


@pytest.mark.parametrize(
    "more",
    [("--no-pin",), ("--keep-image",), ("--image", f"trainer@sha256:{'1' * 64}")],
)
def test_an_image_is_looked_at_however_it_is_chosen(
    submitter: Submitter, server: EmulatorServer, registry: Callable[..., None], more: tuple[str, ...]
) -> None:
    registry("arm64")
    assert run(submitter, "c6g-medium", *(more if "--image" in more else ())).code == 0
    registry("amd64")
    before = changes(server)
    refused = run(submitter, "c6g-medium", *more, "--num-seed", "2")
    assert (refused.code, "is for x86_64" in refused.err) == (2, True)
    assert changes(server) == before


@pytest.mark.parametrize("more", [(), ("--image", f"trainer@sha256:{'1' * 64}")])
def test_a_retry_on_other_instances_looks_at_the_image(
    submitter: Submitter, registry: Callable[..., None], more: tuple[str, ...]
) -> None:
    registry("amd64")
    run(submitter, SPOT, "--attempts", "1", "--num-memory", "512", "--wait", "--poll", "0.1", command="false # {seed}")
    refused = submitter("retry", "first", "--queue", "c6g-medium", *more)
    assert (refused.code, "is for x86_64" in refused.err) == (2, True)
    assert len(submitter("show", "first", "--json").document["submissions"]) == 1


def test_a_retry_looks_at_the_images_of_the_chosen_runs_only(
    submitter: Submitter, registry: Callable[..., None], tmp_path: Path
) -> None:
    registry("amd64", "arm64")
    options = ("--num-seed", "2", "--attempts", "1", "--num-memory", "512", "--wait", "--poll", "0.1")
    run(submitter, SPOT, *options, command="false # {seed}")
    submitter("retry", "first", "--seed", "2", "--image", f"other@sha256:{'2' * 64}")
    submitter("wait", "first", "--poll", "0.1")
    docker = tmp_path / "docker"
    docker.write_text(f"#!/bin/sh\necho \"$@\" >> '{tmp_path}/asked'\ncat '{tmp_path}/found.json'\n")
    retried = submitter("retry", "first", "--seed", "2", "--queue", "c6g-medium", "--json").document["sweeps"][0]
    assert retried["runs"] == "2"
    asked = (tmp_path / "asked").read_text()
    assert "other@" in asked
    assert "trainer" not in asked


def test_that_a_sweep_was_pinned_or_not_is_in_its_record_and_goes_to_one_that_is_like_it(
    submitter: Submitter, registry: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    registry("amd64")

    def pinned(name: str) -> tuple[bool, bool]:
        shown = submitter("show", name, "--json").document
        return shown["options"]["pin"], shown["digest"] is not None

    like = ("run", "--queue", SPOT, "--like", "first", "--name")
    run(submitter, SPOT, "--no-pin", "--no-seed")
    assert pinned("first") == (False, False)
    assert "pin=no" in submitter("show", "first").out
    submitter(*like, "second")
    assert pinned("second") == (False, False)
    submitter(*like, "third", "--pin")
    assert pinned("third") == (True, True)
    assert "pin=yes" in submitter("show", "third").out
    monkeypatch.setenv("SUBMITTER_RUN_PIN", "false")
    submitter("run", "--queue", SPOT, "--like", "third", "--name", "fourth")
    assert pinned("fourth") == (True, True)


def test_where_it_cannot_be_told_what_an_image_is_now_the_sweep_goes_on_with_its_own(
    submitter: Submitter, registry: Callable[..., None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    registry("amd64")
    assert run(submitter, SPOT).code == 0
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    again = run(submitter, SPOT, "--num-seed", "2", "--json")
    assert (again.code, again.document["submitted"]) == (0, 1)
    digest = f"sha256:{'0' * 64}"
    assert f"the runs get what the sweep was begun with, {digest}." in again.err
    first, second = submitter("show", "first", "--json").document["submissions"]
    assert first["definition"] == second["definition"]
    assert digest not in run(submitter, SPOT, "--new").err


def test_a_sweep_begun_afresh_may_keep_its_image_and_without_pin_it_keeps_what_it_has(
    submitter: Submitter, registry: Callable[..., None]
) -> None:
    refused = run(submitter, SPOT, "--keep-image")
    assert (refused.code, "nothing was begun" in refused.err) == (2, True)
    registry("amd64")
    assert run(submitter, SPOT).code == 0
    digest = f"sha256:{'0' * 64}"
    assert run(submitter, SPOT, "--new", "--keep-image", "--no-pin").code == 0
    assert submitter("show", "first", "--json").document["digest"] == digest
    more = run(submitter, SPOT, "--no-pin", "--num-seed", "2")
    assert f"The sweep is pinned, so the runs get what the sweep was begun with, {digest}." in more.err.splitlines()
    assert run(submitter, SPOT, "--no-pin", "--new").code == 0
    assert submitter("show", "first", "--json").document["digest"] is None


@pytest.mark.parametrize(("queue_name", "architecture"), [("c6g-medium", "arm64"), (SPOT, "x86_64")])
def test_where_the_registry_cannot_be_asked_it_is_worth_a_warning(
    submitter: Submitter, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, queue_name: str, architecture: str
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/docker.sock")
    warned = run(submitter, queue_name)
    assert warned.code == 0
    assert (
        f"Whether trainer:1 is made for {architecture} could not be checked. "
        f"No Docker daemon answers at unix://{tmp_path}/docker.sock." in warned.err.splitlines()
    )


def test_a_registry_that_does_not_answer_is_not_waited_for_when_something_else_is_wrong(
    submitter: Submitter, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The registry is asked while AWS is; what was asked is ended with the command."""
    docker = tmp_path / "docker"
    docker.write_text(f"#!/bin/sh\necho $$ >'{tmp_path}/pid'\nexec sleep 1000\n")
    docker.chmod(0o755)
    assert run(submitter, SPOT, "--new").code == 0
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    assert run(submitter, SPOT).code == 3
    if (tmp_path / "pid").exists():  # else it was ended before it wrote
        assert not Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}").exists()


def test_an_entrypoint_that_swallows_the_command_is_refused_before_anything_is_changed(
    submitter: Submitter, server: EmulatorServer, registry: Callable[..., None]
) -> None:
    registry("amd64", entrypoint=["/bin/sh", "-c", "python train.py"])
    before = changes(server)
    refused = run(submitter, SPOT)
    assert refused.code == 2
    assert "The ENTRYPOINT of trainer:1" in refused.err
    assert changes(server) == before


@pytest.mark.parametrize(
    ("on", "options", "sentence"),
    [
        (SPOT, ("--command", "python " + "x" * 9_000, "--num-seed", "5"), "AWS Batch takes 7,168."),
        ("tiny", (), "Nothing ever starts on tiny (c5a.large): it may use 1 vCPUs, and one instance has 2."),
        (SPOT, ("--seeds", "3-1"), "The range 3-1 runs backwards."),
        (SPOT, ("--grid", "seed=1,2"), "seed is no axis"),
        (SPOT, ("--command", "train | tee log", "--num-seed", "2"), "Nothing can be added at the end of the command"),
    ],
)
def test_what_could_never_work_is_refused_before_anything_is_changed(
    submitter: Submitter, server: EmulatorServer, on: str, options: tuple[str, ...], sentence: str
) -> None:
    before = changes(server)
    refused = run(submitter, on, *options)
    assert refused.code == 2
    assert sentence in refused.err
    assert changes(server) == before


def test_no_key_is_put_for_what_is_refused(
    submitter: Submitter, server: EmulatorServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "sentinel")
    before = changes(server)
    assert run(submitter, SPOT, "--secret", "HF_TOKEN", command="python " + "x" * 9_000).code == 2
    assert changes(server) == before
    assert run(submitter, SPOT, "--secret", "HF_TOKEN").code == 0
    assert "PutSecretValue" in changes(server)


def test_on_a_queue_with_fair_shares_jobs_have_their_owners_share(
    submitter: Submitter, aws: Callable[..., Any]
) -> None:
    done = run(submitter, "shared", "--owner", "ada-l", "--json")
    assert done.code == 0, done.err
    (job,) = done.document["jobs"].values()
    assert aws("batch").describe_jobs(jobs=[job])["jobs"][0]["shareIdentifier"] == "adal"


def test_seeds_that_are_named_twice_run_once_and_are_told(submitter: Submitter) -> None:
    done = run(submitter, SPOT, "--seeds", "0,0,1", "--json")
    assert done.document["submitted"] == 2
    assert "Seeds named more than once are taken once: 0." in done.err


def test_queues_tells_how_many_jobs_wait(submitter: Submitter, wait_until: Callable[..., Any]) -> None:
    run(submitter, SPOT, "--num-seed", "20", command="exec sleep 60 # {seed}")
    run(submitter, SPOT, "--name", "second", command="exec sleep 60 # {seed}")

    def waiting() -> dict[str, int | None]:
        return {queue["name"]: queue["waiting"] for queue in submitter("queues", "--json").document["queues"]}

    assert wait_until(lambda: waiting() == {"c6g-medium": 0, "shared": 0, SPOT: 5, "tiny": None})
    assert submitter("queues").out.splitlines()[0].endswith("at once  waiting")


def test_an_unknown_profile_is_one_line_and_needs_none_for_a_dry_run(
    submitter: Submitter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    refused = run(submitter, SPOT)
    assert refused.code == 3
    assert refused.err.splitlines()[-2:] == [
        "Error: The config profile (nobody) could not be found.",
        "Set AWS_PROFILE to one that `aws configure list-profiles` shows.",
    ]
    assert run(submitter, SPOT, "--dry-run").code == 0
