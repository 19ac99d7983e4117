"""`--env` and `--tag`."""

import pytest

from submitter.errors import UsageError
from submitter.variables import parse_tags, parse_variables


def test_values_are_taken_as_they_are() -> None:
    assert parse_variables(["A=1", "B=", "C=x=y z", "A=2"]) == {"A": "2", "B": "", "C": "x=y z"}
    assert parse_variables(["TOKENIZERS_PARALLELISM=false", "MONKEY=1"]).keys() == {"TOKENIZERS_PARALLELISM", "MONKEY"}
    assert parse_tags(["project=exploration", "note=a = b"]) == {"project": "exploration", "note": "a = b"}


@pytest.mark.parametrize(
    "name", ["WANDB_API_KEY", "HF_TOKEN", "MY_SECRET", "DB_PASSWORD", "wandb_api_key", "AWS_SECRET_ACCESS_KEY"]
)
@pytest.mark.parametrize("value", ["", "=sentinel-value"])
def test_a_secret_is_refused_with_the_way_to_give_it_and_never_repeated(name: str, value: str) -> None:
    with pytest.raises(UsageError, match=name) as refusal:
        parse_variables([name + value])
    assert "sentinel" not in str(refusal.value)
    assert "wandb login" in str(refusal.value) if name == "WANDB_API_KEY" else "--secret" in str(refusal.value)


@pytest.mark.parametrize("option", ["A", "=1", "a-b=1", "1A=1", "AWS_BATCH_JOB_ID=1", "WANDB_RUN_ID=x", "A=\0"])
def test_what_is_no_variable_of_the_users_is_refused(option: str) -> None:
    with pytest.raises(UsageError):
        parse_variables([option])


@pytest.mark.parametrize(
    "option", ["a", "=b", "aws:x=1", "rl-batch:sweep=x", "a=" + "x" * 257, "a" * 129 + "=x", "a=<>"]
)
def test_what_aws_takes_no_tag_for_is_refused(option: str) -> None:
    with pytest.raises(UsageError):
        parse_tags([option])


def test_more_tags_than_aws_takes_beside_the_sweeps_own_are_refused() -> None:
    assert len(parse_tags([f"t{index}=x" for index in range(49)])) == 49
    with pytest.raises(UsageError, match="at most 49"):
        parse_tags([f"t{index}=x" for index in range(50)])
