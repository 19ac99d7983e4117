"""What docker is asked for, seen by a docker that records, and what becomes of its refusals."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from emulator.server import EmulatorServer

QUEUE = "c5a-large-spot"
DIGEST = f"sha256:{'1' * 64}"
BOTH = "linux/arm64,linux/amd64"
INSPECT = "Name: {name}\nDriver: {driver}\n\nNodes:\nName: {name}0\nPlatforms: {platforms}\n"
_DOCKER = """#!/usr/bin/env python3
import json, os, pathlib, sys
folder = pathlib.Path(__file__).parent
with (folder / "calls").open("a") as calls:
    calls.write(json.dumps([sys.argv[1:], sys.stdin.read()]) + "\\n")
answers = json.loads((folder / "answers").read_text())
answer = answers.get(" ".join(sys.argv[1:3]), {})
if "--metadata-file" in sys.argv:
    metadata = pathlib.Path(sys.argv[sys.argv.index("--metadata-file") + 1])
    metadata.write_text(json.dumps({"containerimage.digest": answer.get("digest")}))
print(answer.get("out", ""))
print(answer.get("err", ""), file=sys.stderr)
sys.exit(answer.get("code", 0))
"""

Submitter = Callable[..., Any]


class Docker(NamedTuple):
    """A docker on PATH that writes down its calls, and answers as it is told to."""

    folder: Path

    def answers(self, **answers: dict[str, Any]) -> None:
        """Set the answers: `docker.answers(buildx_build={"code": 1, "err": "no"})`."""
        (self.folder / "answers").write_text(json.dumps({name.replace("_", " "): a for name, a in answers.items()}))

    def calls(self) -> list[list[str]]:
        """The arguments of each call so far."""
        lines = (self.folder / "calls").read_text().splitlines() if (self.folder / "calls").exists() else []
        return [json.loads(line)[0] for line in lines]


@pytest.fixture
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Docker:
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "docker").write_text(_DOCKER)
    (folder / "docker").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    project = tmp_path / "project"
    project.mkdir()
    (project / "Dockerfile").write_text("FROM scratch\n")
    monkeypatch.chdir(project)
    made = Docker(folder)
    made.answers(buildx_inspect={"out": INSPECT.format(name="big", driver="docker-container", platforms=BOTH)})
    return made


def builder(driver: str = "docker-container", platforms: str = BOTH) -> dict[str, Any]:
    return {"out": INSPECT.format(name="mine", driver=driver, platforms=platforms)}


def jobs(server: EmulatorServer) -> int:
    return len(server.control.record.calls("batch", "SubmitJob"))


def test_building_for_several_platforms_asks_buildx_as_cleanrl_does(submitter: Submitter, docker: Docker) -> None:
    docker.answers(buildx_inspect=builder(), buildx_build={"digest": DIGEST})
    done = submitter("build", "--docker-tag", "lab/trainer:1", "--archs", BOTH, "--push", "--build-arg", "A=b c")
    assert (done.code, done.out) == (0, f"lab/trainer@{DIGEST}\n")
    inspected, built = docker.calls()
    assert inspected == ["buildx", "inspect", "--bootstrap"]
    metadata = built.pop(built.index("--metadata-file") + 1)
    built.remove("--metadata-file")
    assert not Path(metadata).exists()
    assert built == [
        *("buildx", "build", "--output=type=registry", "--platform", BOTH),
        *("--build-arg", "A=b c", "-t", "lab/trainer:1", "."),
    ]


@pytest.mark.parametrize(
    ("arguments", "answer", "words"),
    [
        (
            ("--archs", BOTH, "--push"),
            builder(platforms="linux/amd64*, linux/386"),
            ("linux/arm64", "binfmt --install", "ssh://"),
        ),
        (("--archs", BOTH, "--push"), builder("docker"), ("one platform at a time", "docker buildx create")),
        ((), {"code": 1, "err": "docker: 'buildx' is not a docker command."}, ("no buildx", "docs.docker.com")),
        ((), {"code": 1, "err": "ERROR: Cannot connect to the Docker daemon"}, ("Cannot connect",)),
    ],
)
def test_a_builder_that_cannot_do_it_is_explained_before_the_build(
    submitter: Submitter, docker: Docker, arguments: tuple[str, ...], answer: dict[str, Any], words: tuple[str, ...]
) -> None:
    docker.answers(buildx_inspect=answer)
    done = submitter("build", "--image", "lab/trainer:1", *arguments)
    assert done.code == 3
    assert all(word in done.err for word in words)
    assert [call[:2] for call in docker.calls()] == [["buildx", "inspect"]]


@pytest.mark.usefixtures("docker")
def test_without_docker_it_is_one_sentence(submitter: Submitter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    done = submitter("build", "--image", "lab/trainer:1")
    assert done.code == 3
    assert done.err.startswith("Error: Cannot run `docker`: No such file or directory.\nInstall Docker")


def test_a_build_or_push_that_fails_submits_nothing(
    submitter: Submitter, docker: Docker, server: EmulatorServer
) -> None:
    docker.answers(buildx_inspect=builder(), buildx_build={"code": 1, "err": "denied"})
    done = submitter("run", "--queue", QUEUE, "--image", "lab/trainer:1", "-b", "-p", "--archs", BOTH)
    assert done.code == 3
    assert "lab/trainer:1 could not be built and pushed: docker exited with 1." in done.err
    assert jobs(server) == 0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ("--build", "--push", "--archs", "linux/arm64"),
            "builds nothing that the instances of c5a-large-spot can run",
        ),
        (("--push",), "--push pushes what --build has built."),
        (("--build", "--archs", BOTH), "does not go into Docker's own store"),
    ],
)
def test_what_cannot_work_is_refused_without_a_build(
    submitter: Submitter, docker: Docker, server: EmulatorServer, arguments: tuple[str, ...], sentence: str
) -> None:
    done = submitter("run", "--queue", QUEUE, "--image", "lab/trainer:1", *arguments)
    assert done.code == 2
    assert sentence in done.err
    assert docker.calls() == []
    assert jobs(server) == 0


def test_what_is_another_sweep_is_refused_before_its_image_is_built_and_pushed(
    submitter: Submitter, docker: Docker, server: EmulatorServer
) -> None:
    docker.answers(buildx_inspect=builder(), buildx_build={"digest": DIGEST})
    common = ("run", "--queue", QUEUE, "--name", "first", "--image", "lab/trainer:1", "-b", "-p")
    assert submitter(*common, "--command", "true").code == 0
    before = docker.calls()
    refused = submitter(*common, "--command", "false")
    assert (refused.code, "was begun with the command 'true', not 'false'." in refused.err) == (2, True)
    assert docker.calls() == before
    assert jobs(server) == 1


def test_an_amd64_image_is_refused_on_a_queue_of_arm64_instances(
    submitter: Submitter, docker: Docker, server: EmulatorServer, tmp_path: Path
) -> None:
    outputs = json.loads((tmp_path / "outputs.json").read_text())
    outputs["queues"][QUEUE]["architecture"] = "arm64"
    (tmp_path / "outputs.json").write_text(json.dumps(outputs))
    found = {"manifest": {"digest": DIGEST}, "image": {"architecture": "amd64"}}
    docker.answers(buildx_imagetools={"out": json.dumps(found)})
    done = submitter("run", "--queue", QUEUE, "--image", "lab/trainer:1", "--pin")
    assert done.code == 2
    assert "lab/trainer:1 is for x86_64, and the instances of c5a-large-spot are arm64." in done.err
    assert jobs(server) == 0


def test_a_digest_reference_is_used_as_it_is(submitter: Submitter, docker: Docker, aws: Callable[..., Any]) -> None:
    image = f"lab/trainer@{DIGEST}"
    assert submitter("run", "--queue", QUEUE, "--image", image, "--command", "true", "--pin").code == 0
    (definition,) = aws("batch").describe_job_definitions()["jobDefinitions"]
    assert definition["containerProperties"]["image"] == image
    assert [call[:3] for call in docker.calls()] == [["buildx", "imagetools", "inspect"]]


def test_a_push_to_ecr_logs_docker_in_with_the_token_on_its_standard_input(
    submitter: Submitter, docker: Docker, server: EmulatorServer
) -> None:
    docker.answers(buildx_inspect=builder(), buildx_build={"digest": DIGEST})
    image = "123456789012.dkr.ecr.us-east-1.amazonaws.com/rl:1"
    assert submitter("build", "--image", image, "--push").code == 0
    (login, stdin), *_ = map(json.loads, (docker.folder / "calls").read_text().splitlines())
    assert login == ["login", "--username", "AWS", "--password-stdin", image.partition("/")[0]]
    assert stdin
    assert stdin not in " ".join(login)
    assert [call.operation for call in server.control.record.calls("ecr")] == ["GetAuthorizationToken"]
