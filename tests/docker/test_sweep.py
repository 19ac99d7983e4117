"""Sweeps whose jobs are containers: an account with `--runner docker`, images in a registry."""

import json
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
import pytest

from emulator.home import Home
from emulator.project import Project
from submitter.errors import ConfigurationError
from submitter.registry import LookUp
from tests.docker.conftest import ROOT, SUBMITTER, Done

if TYPE_CHECKING:
    from tests.docker.conftest import Engine

QUEUE = ("--queue", "c5a-large-spot", "--poll", "0.2")


@pytest.fixture(scope="module")
def project(engine: "Engine", tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """The stack of Pulumi.dev.yaml in an account that runs jobs as containers."""
    folder = tmp_path_factory.mktemp("account")
    home = Home(folder / "home")

    def emulator(*command: str) -> None:
        argv = [sys.executable, "-m", "emulator", *command, "--home", str(home.folder)]
        subprocess.run(argv, cwd=ROOT, env=engine.environment, check=True)

    emulator("start", "--runner", "docker")
    try:
        deployed = Project.copy(folder / "project", home)
        deployed.init()
        deployed.up()
        yield deployed
    finally:
        emulator("stop")


def submitter(project: Project, engine: "Engine", *arguments: str, check: bool = True, **more: str) -> Done:
    environment = {**engine.environment, **project.home.environment(), **more}
    environment["PATH"] = f"{environment['PATH']}:/usr/sbin"
    done = subprocess.run(
        [SUBMITTER, *arguments],
        cwd=project.folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert not check or done.returncode == 0, done.stderr
    return done


def client(project: Project, service: str) -> Any:
    session = boto3.Session(aws_access_key_id="emulator", aws_secret_access_key="emulator", region_name="us-east-1")
    return session.client(service, endpoint_url=project.home.running().url)  # type: ignore[call-overload] # not a literal


def write_image(folder: Path, base: str, text: str) -> None:
    (folder / "Dockerfile").write_text(f"FROM {base}\nRUN echo {text} >/app/text\n")


def test_jobs_are_containers_that_end_as_they_say(project: Project, engine: "Engine", image: str) -> None:
    command = "echo $DISPLAY $(id -un) {seed}; exit $(({seed} - 1))"
    run = ("run", *QUEUE, "--name", "exits", "--image", image, "--command", command, "--attempts", "1")
    done = submitter(project, engine, *run, "--num-seed", "2", "--wait", "--json", check=False)
    assert done.returncode == 1
    assert json.loads(done.stdout)["counts"] == {"succeeded": 1, "failed": 1}
    words = submitter(project, engine, "logs", "exits", "--seed", "1").stdout.split()
    assert words[0].startswith(":")
    assert words[1:] == ["trainer", "1"]
    shown = json.loads(submitter(project, engine, "status", "exits", "--runs", "--json").stdout)
    assert [run["reason"] for run in shown["runs"]] == [None, "exit code 1"]
    assert engine.containers() == []


def test_a_run_that_takes_more_memory_than_it_reserved_says_so(project: Project, engine: "Engine", image: str) -> None:
    run = ("run", *QUEUE, "--name", "greedy", "--image", image, "--command", ": {seed}; exec tail /dev/zero")
    done = submitter(project, engine, *run, "--num-memory", "64", "--attempts", "1", "--wait", check=False)
    assert done.returncode == 1
    shown = json.loads(submitter(project, engine, "status", "greedy", "--runs", "--json").stdout)
    assert [run["reason"] for run in shown["runs"]] == ["OutOfMemoryError: Container killed due to memory usage"]


def test_an_image_that_is_nowhere_fails_its_job_with_dockers_words(
    project: Project, engine: "Engine", registry: str
) -> None:
    run = ("run", *QUEUE, "--name", "nowhere", "--image", f"{registry}/nothing:1", "--attempts", "1")
    done = submitter(project, engine, *run, "--wait", check=False)
    assert done.returncode == 1
    shown = json.loads(submitter(project, engine, "status", "nowhere", "--runs", "--json").stdout)
    assert "CannotPullContainerError" in shown["runs"][0]["reason"]


def test_a_pushed_image_is_pinned_and_a_tag_that_moves_does_not_change_the_sweep(
    project: Project, engine: "Engine", image: str, registry: str, tmp_path: Path
) -> None:
    tag = f"{registry}/trainer:latest"
    run = ("run", *QUEUE, "--name", "pinned", "--image", tag, "--command", "cat text; : {seed}", "--pin", "--wait")

    def build_and_run(*more: str, check: bool = True) -> Done:
        environment = {**engine.environment, **project.home.environment()}
        return subprocess.run(
            [SUBMITTER, "--stack-dir", str(project.folder), *run, *more],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=check,
        )

    write_image(tmp_path, image, "first")
    build_and_run("--build", "--push", "--num-seed", "1")
    first = json.loads(submitter(project, engine, "show", "pinned", "--json").stdout)["digest"]
    assert first == engine_digest(engine, tag)
    job_images = {
        definition["containerProperties"]["image"]
        for definition in client(project, "batch").describe_job_definitions(status="ACTIVE")["jobDefinitions"]
        if "trainer" in definition["jobDefinitionName"]
    }
    assert job_images == {f"{registry}/trainer@{first}"}

    write_image(tmp_path, image, "second")
    moved = build_and_run("--build", "--push", "--num-seed", "2", check=False)
    assert moved.returncode == 2
    assert "has become another image" in moved.stderr
    assert all(choice in moved.stderr for choice in ("--keep-image", "--new", "--name"))
    assert engine_digest(engine, tag) != first

    assert build_and_run("--num-seed", "2", check=False).returncode == 2, "also without a build"
    build_and_run("--num-seed", "2", "--keep-image")
    logs = submitter(project, engine, "logs", "pinned").stdout
    assert logs.splitlines() == ["seed=1 | first", "seed=2 | first"]
    build_and_run("--num-seed", "1", "--new")
    assert submitter(project, engine, "logs", "pinned").stdout == "second\n"


def test_without_buildx_the_engine_is_asked_what_a_registry_holds(
    engine: "Engine", registry: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tag = f"{registry}/asked:1"
    with tarfile.open(tmp_path / "small.tar", "w") as small:
        small.add(__file__, "file")
    engine("docker", "import", '--change=ENTRYPOINT ["tini"]', str(tmp_path / "small.tar"), tag)
    engine("docker", "push", tag)
    monkeypatch.setenv("DOCKER_HOST", engine.environment["DOCKER_HOST"])
    monkeypatch.setenv("DOCKER_CONFIG", engine.environment["DOCKER_CONFIG"])
    with LookUp(tag) as by_buildx:
        expected = by_buildx.published
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))  # without buildx in it
    with LookUp(tag) as by_engine:
        found = by_engine.published
    assert (found.digest, found.architectures) == (expected.digest, expected.architectures)
    assert expected.entrypoint
    assert not found.entrypoint, "the engine was asked, which does not tell it"
    with LookUp(f"{registry}/nothing:1") as nothing, pytest.raises(ConfigurationError, match="The Docker Engine says"):
        _ = nothing.published


def engine_digest(engine: "Engine", tag: str) -> str:
    shown = engine("docker", "buildx", "imagetools", "inspect", "--format", "{{json .Manifest}}", tag).stdout
    digest: str = json.loads(shown)["digest"]
    return digest


def test_a_build_that_fails_submits_nothing_and_keeps_dockers_words(
    project: Project, engine: "Engine", image: str, tmp_path: Path
) -> None:
    (tmp_path / "Dockerfile").write_text(f"FROM {image}\nRUN echo this-went-wrong && false\n")
    environment = {**engine.environment, **project.home.environment()}
    command = [SUBMITTER, "--stack-dir", str(project.folder), "run", *QUEUE, "--name", "broken", "--image", "broken:1"]
    done = subprocess.run(
        [*command, "--build"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 3
    assert "this-went-wrong" in done.stderr
    assert "Error: broken:1 could not be built: docker exited with 1." in done.stderr
    assert submitter(project, engine, "status", "broken", check=False).returncode == 2


def test_a_key_reaches_the_container_and_no_file_of_the_stack_or_the_account(
    project: Project, engine: "Engine", image: str
) -> None:
    command = 'printf %s "$WANDB_API_KEY" | tr a-z A-Z; : --track {seed}'
    run = ("run", *QUEUE, "--name", "key", "--image", image, "--command", command, "--wait")
    submitter(project, engine, *run, WANDB_API_KEY="sentinel-5f0c1e")
    logs = submitter(project, engine, "logs", "key")
    assert logs.stdout == "SENTINEL-5F0C1E\n", logs.stderr
    state = project.pulumi("stack", "export", "--show-secrets", capture=True).stdout
    preview = project.pulumi("preview", "--json", "--show-secrets", "--refresh", capture=True).stdout
    assert "aws:secretsmanager/secret:Secret" in state
    assert "sentinel-5f0c1e" not in state + preview
    files = [file for folder in (project.home.folder, project.folder) for file in folder.rglob("*") if file.is_file()]
    assert project.home.log in files
    assert not [file for file in files if b"sentinel-5f0c1e" in file.read_bytes()]
