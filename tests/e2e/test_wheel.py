"""The wheel is what a user who only submits installs."""

import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def uv(*arguments: str | Path) -> str:
    program = shutil.which("uv") or str(ROOT / ".uv" / "bin" / "uv")
    done = subprocess.run([program, *arguments], cwd=ROOT, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    uv("build", "--quiet", "--wheel", "--out-dir", folder)
    (wheel,) = folder.glob("*.whl")
    return wheel


def test_the_wheel_holds_infra_and_submitter_and_nothing_else(wheel: Path) -> None:
    names = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert {name for name in names if not name.endswith(".dist-info")} == {"infra", "submitter"}


def test_submitter_runs_from_the_wheel_in_an_empty_environment(wheel: Path, tmp_path: Path) -> None:
    """With the locked versions, as everywhere in these tests, and nothing of the development groups."""
    constraints, environment = tmp_path / "constraints.txt", tmp_path / "environment"
    uv("export", "--quiet", "--frozen", "--no-default-groups", "--no-hashes", "--no-emit-project", "-o", constraints)
    uv("venv", "--quiet", environment)
    uv("pip", "install", "--quiet", "--python", environment, "--constraint", constraints, wheel)
    submitter = environment / "bin" / "submitter"
    done = subprocess.run([submitter, "--help"], cwd=tmp_path, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Usage: submitter")
