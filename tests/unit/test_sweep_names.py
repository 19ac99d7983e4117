import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from submitter.errors import UsageError
from submitter.names import check_sweep_name, job_name, new_nonce, owner_name, run_id, safe_name, sweep_name

AWS_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}", re.ASCII)


@settings(max_examples=100, derandomize=True, deadline=None)
@given(st.text(max_size=200), st.integers(1, 10**6), st.integers(0, 10**5))
def test_every_job_name_is_one_that_aws_accepts_and_ends_in_nonce_entry_and_slot(
    sweep: str, entry: int, slot: int
) -> None:
    name = job_name(sweep, "abcdefghij", entry, slot)
    assert AWS_NAME.fullmatch(name)
    assert name.endswith(f"-abcdefghij-{entry}-{slot}")


def test_a_plain_name_stays_as_it_is() -> None:
    assert job_name("ada/first_1", "abcdefghij", 1, 0) == "first_1-abcdefghij-1-0"


def test_names_that_differ_in_replaced_or_cut_characters_stay_different() -> None:
    """`a.b` and `a-b` would be one name after replacing, and long ones after cutting."""
    names = ["a.b", "a-b", "a/b", "a b", "-a-b", "x" * 128, "x" * 129, "x" * 130]
    safe = [safe_name(name) for name in names]
    assert len(set(safe)) == len(names)
    assert all(AWS_NAME.fullmatch(name) for name in safe)


def test_an_owner_keeps_his_name_and_gets_a_hash_only_where_something_was_replaced() -> None:
    assert owner_name("ada") == "ada"
    assert re.fullmatch(r"ada-example-com-[0-9a-f]{6}", owner_name("ada@example.com"))
    assert owner_name("ada@example.com") != owner_name("ada.example.com")


@pytest.mark.parametrize("name", ["first", "v1.2", "A_b-c", "x" * 64])
def test_names_for_sweeps(name: str) -> None:
    assert check_sweep_name(name) == name


@pytest.mark.parametrize("name", ["", "a/b", "a b", "-a", ".a", "é", "x" * 65, "a\n"])
def test_names_that_sweeps_cannot_have_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match="letters"):
        check_sweep_name(name)


@pytest.mark.parametrize(
    ("command", "script"),
    [
        ("uv run python cleanrl/ppo.py --env-id CartPole-v1", "ppo"),
        ("python -m my.trainer --x", "trainer"),
        ("OMP_NUM_THREADS=1 ./run", "run"),
        ("bash scripts/all.sh", "all"),
        ("echo 'unfinished", "echo"),
        ("FOO=1", "run"),
    ],
)
def test_a_sweep_without_a_name_is_called_after_its_script(command: str, script: str) -> None:
    assert re.fullmatch(rf"{script}-[0-9a-f]{{6}}", sweep_name(command, "image"))


def test_the_default_name_stands_for_command_and_image() -> None:
    name = sweep_name("python a.py", "image:1")
    assert sweep_name("python a.py\n", "image:1") == name
    assert sweep_name("python a.py", "image:2") != name
    assert sweep_name("python a.py --x", "image:1") != name
    assert check_sweep_name(name) == name


def test_a_nonce_is_safe_in_job_names_and_wandb_ids_whatever_the_case() -> None:
    nonces = {new_nonce() for _ in range(1000)}
    assert len(nonces) == 1000
    assert all(re.fullmatch("[a-z2-7]{10}", nonce) for nonce in nonces)
    assert run_id("abcdefghij", 12) == "abcdefghij-12"
