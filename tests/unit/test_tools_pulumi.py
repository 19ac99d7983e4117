import importlib.metadata
import re
from pathlib import Path

import pytest

from tools import cache, go_build, on_path, pulumi
from tools.steps import UnavailableError, last_line


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder on PATH, empty, and a cache of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def program(file: Path) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch(mode=0o755)
    return file


@pytest.mark.parametrize("version", ["v3.272.0", "3.272.0", "v3.274.1", "v3.1000.0+dirty", "v4.0.0"])
def test_a_pulumi_on_path_is_used_from_the_sdks_version_on(path: Path, version: str) -> None:
    program(path / "pulumi")
    program(path / on_path.LANGUAGE_HOST)
    assert on_path.usable("3.272.0", own=cache.root(), version_of=lambda _: version) == path


@pytest.mark.parametrize(
    ("version", "reason"), [("v3.271.9", "older than the SDK's 3.272.0"), ("v3.99.0", "older"), ("", "does not run")]
)
def test_one_that_is_too_old_or_broken_is_not_and_that_is_said(
    path: Path, capsys: pytest.CaptureFixture[str], version: str, reason: str
) -> None:
    program(path / "pulumi")
    program(path / on_path.LANGUAGE_HOST)
    assert on_path.usable("3.272.0", own=cache.root(), version_of=lambda _: version) is None
    assert reason in capsys.readouterr().err


def test_one_without_a_python_language_host_is_not_used(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What `go install` makes cannot run a Python program."""
    program(path / "pulumi")
    assert on_path.usable("3.272.0", own=cache.root(), version_of=lambda _: "v3.274.1") is None
    assert on_path.LANGUAGE_HOST in capsys.readouterr().err


def test_one_that_is_a_link_to_an_installation_elsewhere_is_used(path: Path, tmp_path: Path) -> None:
    program(tmp_path / "opt" / on_path.LANGUAGE_HOST)
    (path / "pulumi").symlink_to(program(tmp_path / "opt" / "pulumi"))
    assert on_path.usable("3.272.0", own=cache.root(), version_of=lambda _: "v3.274.1") == path


def test_an_older_build_of_ours_on_path_does_not_stand_in_for_the_right_one(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shell keeps the PATH of an earlier session after an update of the checkout."""
    older = program(cache.root() / "3.274.1-0123456789ab" / "pulumi").parent
    program(older / on_path.LANGUAGE_HOST)
    monkeypatch.setenv("PATH", f"{older}:{path}")
    assert on_path.usable("3.272.0", own=cache.root(), version_of=lambda _: "v3.274.1") is None


@pytest.mark.usefixtures("path")
def test_without_any_way_to_get_it_one_sentence_says_what_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UnavailableError) as caught:
        pulumi.ensure()
    sentence, remedy = str(caught.value).splitlines()
    assert re.match(r"the Pulumi CLI 3\.\d+\.\d+ or newer is needed", sentence)
    assert "curl" in sentence
    assert "there is no Go on PATH (1.26.6 or newer can build it)" in sentence
    assert remedy.startswith("Install it")
    assert pulumi.main() == 1
    assert "error: the Pulumi CLI" in capsys.readouterr().err
    assert [file.name for file in cache.root().iterdir()] == ["lock"]


@pytest.mark.usefixtures("path")
def test_what_is_cached_is_used_without_asking_anybody(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is on PATH here, so that any attempt to start a program would fail."""
    version = go_build.locked_version()
    folder = cache.root() / f"{version}-{go_build.digest(with_language_host=True)}"
    with cache.locked():
        cache.filled(folder, lambda staging: (staging / "pulumi").touch(mode=0o755))
    assert pulumi.ensure() == folder
    assert capsys.readouterr().err == ""


def test_the_hash_covers_the_language_host_and_the_modules_that_the_cli_is_built_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("go.mod", "go.sum"):
        (tmp_path / name).write_text((go_build.FOLDER / name).read_text())
    host = tmp_path / "language_host" / "host.py"
    host.parent.mkdir()
    host.write_text("first")
    monkeypatch.setattr(go_build, "FOLDER", tmp_path)

    def digests() -> tuple[str, str]:
        return go_build.digest(with_language_host=False), go_build.digest(with_language_host=True)

    first = digests()
    assert digests() == first
    host.write_text("second")
    second = digests()
    assert (second[0], second[1] != first[1]) == (first[0], True)
    with (tmp_path / "go.sum").open("a") as file:
        file.write("more\n")
    assert digests()[0] != second[0]


def test_the_locked_cli_is_at_least_as_new_as_the_locked_sdk() -> None:
    """Otherwise each run would end in a CLI that the next one refuses."""
    locked, sdk = go_build.locked_version(), importlib.metadata.version("pulumi")
    assert on_path.release(locked) >= on_path.release(sdk)


@pytest.mark.parametrize(
    ("installed", "expected"), [("1.26.6", "local"), ("1.27rc1", "local"), ("1.26.5", "auto"), ("1.24.4", "auto")]
)
def test_go_fetches_a_newer_one_only_when_it_must(installed: str, expected: str) -> None:
    assert go_build.toolchain(installed, "1.26.6") == expected


@pytest.mark.parametrize(("installed", "reason"), [("", "no Go on PATH"), ("1.19.8", "is 1.19.8")])
def test_a_go_that_cannot_is_named_with_the_one_that_can(installed: str, reason: str) -> None:
    with pytest.raises(UnavailableError, match=f"{reason}.*1.26.6 or newer can build it"):
        go_build.toolchain(installed, "1.26.6")


def test_a_commands_reason_is_its_last_line(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("go: downloading x\ngo: dial tcp: no such host\n\n")
    assert last_line(log) == "go: dial tcp: no such host"
