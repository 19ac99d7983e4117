"""Names of images, the command of a build, and builds that cannot work."""

from pathlib import Path

import pytest

from submitter.errors import UsageError
from submitter.images import BuildOptions, Reference, check_build, check_reference, is_ecr, pinned

DIGEST = f"sha256:{'0' * 64}"
ECR = "123456789012.dkr.ecr.eu-west-1.amazonaws.com"


@pytest.mark.parametrize(
    ("image", "repository", "tag", "digest", "registry"),
    [
        ("vwxyzjn/cleanrl:latest", "vwxyzjn/cleanrl", "latest", None, None),
        ("ubuntu", "ubuntu", None, None, None),
        ("127.0.0.1:5000/trainer", "127.0.0.1:5000/trainer", None, None, "127.0.0.1:5000"),
        ("localhost/trainer:v1.2", "localhost/trainer", "v1.2", None, "localhost"),
        (f"{ECR}/rl:v1@{DIGEST}", f"{ECR}/rl", "v1", DIGEST, ECR),
        (f"trainer@{DIGEST}", "trainer", None, DIGEST, None),
    ],
)
def test_a_name_is_taken_apart(
    image: str, repository: str, tag: str | None, digest: str | None, registry: str | None
) -> None:
    reference = Reference.parse(image)
    assert (reference.repository, reference.tag, reference.digest) == (repository, tag, digest)
    assert reference.registry == registry


@pytest.mark.parametrize(
    "image",
    [
        "a",
        "trainer:1",
        "vwxyzjn/cleanrl:latest",
        "localhost/x",
        "localhost:5000/trainer:V_1.0-x",
        "registry:5000/a/b",
        "GHCR.io/lab/a__b/c-d--e.f:v1",
        "[::1]:5000/x",
        "x.y",
        f"{ECR}/rl@{DIGEST}",
        f"trainer:1@{DIGEST}",
        "a" * 255,
    ],
)
def test_what_docker_takes_is_an_images_name(image: str) -> None:
    assert check_reference(image) == image


@pytest.mark.parametrize(
    "image",
    [
        "",
        "a b c",
        "--privileged",
        "=bad=",
        "UPPER/x",
        "Trainer",
        "trainer:",
        "trainer:a:b",
        "trainer:-x",
        "trainer@sha256:1",
        "a//b",
        "/a",
        "a/",
        "a_-b",
        "https://ghcr.io/lab/x",
        "trainer:1\n",
        "a" * 256,
        f"trainer:{'a' * 129}",
    ],
)
def test_what_docker_does_not_take_is_none(image: str) -> None:
    with pytest.raises(UsageError, match="is not an image's name"):
        check_reference(image)


def test_a_pinned_name_means_one_image_for_good() -> None:
    assert pinned("localhost:5000/trainer:v1", DIGEST) == f"localhost:5000/trainer@{DIGEST}"
    assert pinned("trainer:v1", None) == "trainer:v1"


def test_ecr_is_known_by_its_host() -> None:
    assert is_ecr(f"{ECR}/rl:v1")
    assert not is_ecr("vwxyzjn/dkr.ecr.amazonaws.com")


@pytest.mark.parametrize(
    ("push", "archs", "expected"),
    [
        (False, "linux/amd64", ["--output=type=docker", "--platform", "linux/amd64"]),
        (True, "linux/arm64, linux/amd64", ["--output=type=registry", "--platform", "linux/arm64,linux/amd64"]),
    ],
)
def test_a_build_is_asked_for_as_cleanrl_does(push: bool, archs: str, expected: list[str]) -> None:
    argv = BuildOptions(image="trainer:1", push=push, archs=archs).argv()
    assert argv == ["docker", "buildx", "build", *expected, "-t", "trainer:1", "."]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"archs": "linux/arm64,linux/amd64"}, "does not go into Docker's own store"),
        ({"archs": ", "}, "names no platform"),
        ({"image": f"trainer@{DIGEST}"}, "is there already"),
        ({"folder": Path("/nowhere")}, "There is no Dockerfile in /nowhere"),
    ],
)
def test_a_build_that_cannot_work_is_refused_before_docker_is_asked(options: dict[str, object], sentence: str) -> None:
    folder = Path(__file__).parents[2]
    with pytest.raises(UsageError, match=sentence) as refused:
        check_build(BuildOptions(**{"image": "trainer:1", "folder": folder, **options}))  # type: ignore[arg-type] # each is of its kind
    assert refused.value.remedy
