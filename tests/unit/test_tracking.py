"""Whether a command tracks its runs, whose W&B key it uses, and the variables that go with it."""

import re
from pathlib import Path

import pytest

from submitter.errors import ConfigurationError, UsageError
from submitter.provenance import Commit
from submitter.tracking import api_key, tracks, variables

TRACKED = "python train.py --track"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def log_in(home: Path, *hosts: str) -> None:
    (home / ".netrc").write_text("".join(f"machine {host}\n  login user\n  password key-of-{host}\n" for host in hosts))


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (TRACKED, True),
        ("python train.py --wandb --seed 1", True),
        ("python train.py --track=true", True),
        ("cd code && python train.py --track True; echo done", True),
        ("python train.py --track False", False),
        ("python train.py --track=0", False),
        ("python train.py --no-track --tracker x", False),
        ("python train.py --note 'use --track'", False),
        ("python train.py", False),
    ],
)
def test_a_command_tracks_when_it_says_so(command: str, expected: bool) -> None:
    assert tracks(command) is expected


def test_the_key_given_comes_before_the_environments_and_that_before_the_log_in(home: Path) -> None:
    log_in(home, "api.wandb.ai")
    environment = {"WANDB_API_KEY": "of-the-environment"}
    assert api_key("given", TRACKED, environment) == "given"
    assert api_key(None, TRACKED, environment) == "of-the-environment"
    assert api_key(None, TRACKED, {}) == "key-of-api.wandb.ai"


def test_the_log_in_is_the_one_of_the_server_in_use(home: Path, tmp_path: Path) -> None:
    log_in(home, "api.wandb.ai", "wandb.example.org")
    assert api_key(None, TRACKED, {"WANDB_BASE_URL": "https://wandb.example.org:8080"}) == "key-of-wandb.example.org"
    (tmp_path / "elsewhere").write_text("machine api.wandb.ai login user password elsewhere\n")
    assert api_key(None, TRACKED, {"NETRC": str(tmp_path / "elsewhere")}) == "elsewhere"


@pytest.mark.usefixtures("home")
def test_a_missing_key_is_an_error_only_when_the_command_tracks() -> None:
    assert api_key(None, "python train.py", {}) is None
    with pytest.raises(ConfigurationError, match=r"there is no W&B key for api\.wandb\.ai") as refused:
        api_key(None, TRACKED, {})
    assert refused.value.remedy == "Run `wandb login`, or set WANDB_API_KEY."
    with pytest.raises(ConfigurationError) as refused:
        api_key(None, TRACKED, {}, {"WANDB_MODE": "online"})
    assert "--env WANDB_MODE=offline" in str(refused.value.remedy)
    assert api_key(None, TRACKED, {}, {"WANDB_MODE": "offline"}) is None
    with pytest.raises(ConfigurationError) as refused:
        api_key(None, TRACKED, {"WANDB_BASE_URL": "https://wandb.example.org"})
    assert "wandb login --host https://wandb.example.org" in str(refused.value.remedy)


def test_a_netrc_file_that_cannot_be_read_is_not_shown(home: Path) -> None:
    (home / ".netrc").write_text("machine api.wandb.ai login user hunter2\n")
    with pytest.raises(ConfigurationError, match="cannot be read as a netrc file") as refused:
        api_key(None, TRACKED, {})
    assert "hunter2" not in str(refused.value)
    assert refused.value.__cause__ is None
    assert refused.value.__suppress_context__


def test_a_netrc_file_without_the_hosts_own_entry_has_no_key(home: Path) -> None:
    (home / ".netrc").write_text("machine github.com login user password theirs\ndefault login user password anyone\n")
    assert api_key(None, "python train.py", {}) is None


def test_a_netrc_file_that_cannot_be_read_stops_nobody_who_does_not_track(home: Path) -> None:
    (home / ".netrc").write_text("machine api.wandb.ai login user hunter2\n")
    assert api_key(None, "python train.py", {}) is None


def test_a_netrc_file_that_is_no_text_is_one_that_cannot_be_read(home: Path) -> None:
    (home / ".netrc").write_bytes(b"machine example.org login user password caf\xe9\n")
    assert api_key(None, "python train.py", {}) is None
    with pytest.raises(ConfigurationError, match="cannot be read as a netrc file"):
        api_key(None, TRACKED, {})


@pytest.mark.usefixtures("home")
def test_what_is_no_url_of_a_server_is_refused() -> None:
    environment = {"WANDB_BASE_URL": "http://[bad"}
    with pytest.raises(UsageError, match="WANDB_BASE_URL is not a URL"):
        api_key("given", TRACKED, environment)
    with pytest.raises(UsageError, match="WANDB_BASE_URL is not a URL"):
        variables(environment, name="train-1", commit=None)


@pytest.mark.parametrize("variable", ["WANDB_PROJECT", "WANDB_TAGS"])
def test_a_variable_that_is_no_text_is_refused(variable: str) -> None:
    with pytest.raises(UsageError, match=f"A value of {variable} is not valid text"):
        variables({variable: "\udcff"}, name="train-1", commit=None)


def test_a_server_with_a_password_in_its_url_is_refused_for_jobs_would_show_it() -> None:
    with pytest.raises(UsageError, match="WANDB_BASE_URL has a user or password in it") as refused:
        variables({"WANDB_BASE_URL": "https://ada:hunter2@wandb.example.org"}, name="train-1", commit=None)
    assert "hunter2" not in str(refused.value)


def test_variables_of_wandb_go_to_the_jobs_with_tags_that_lead_back_to_the_sweep_and_the_code() -> None:
    environment = {"WANDB_PROJECT": "rl", "WANDB_ENTITY": "lab", "WANDB_API_KEY": "secret", "WANDB_TAGS": "a,b"}
    given = variables(environment, name="train-1", commit=Commit("0123456789abcdef", False), more_tags=["v1.0"])
    assert given == {
        "WANDB_PROJECT": "rl",
        "WANDB_ENTITY": "lab",
        "WANDB_TAGS": "a,b,train-1,git-0123456789ab,v1.0",
    }


def test_nothing_depends_on_private_modules_of_wandb() -> None:
    """CleanRL's script calls wandb.util.generate_id, which newer versions do not have."""
    for file in (Path(__file__).parents[2] / "submitter").rglob("*.py"):
        assert not re.search(r"wandb\.(util|sdk|apis|_)|from wandb", file.read_text()), file
