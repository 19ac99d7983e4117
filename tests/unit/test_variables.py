"""`--env` and `--tag`."""

import pytest

from submitter.errors import UsageError
from submitter.variables import check_secret_names, parse_tags, parse_variables


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


def test_the_empty_text_is_told_how_a_variable_is_written() -> None:
    with pytest.raises(UsageError, match="Write --env NAME=VALUE"):
        parse_variables([""])


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("HF_TOKEN=sentinel", "'HF_TOKEN' is not a variable's name"),
        ("", "is not a variable's name"),
        ("WANDB_RUN_ID", "WANDB_RUN_ID is set for each run"),
        ("AWS_BATCH_JOB_ATTEMPT", "AWS_BATCH_JOB_ATTEMPT is set for each run"),
        ("FOO", "FOO is given by --env and by --secret"),
    ],
)
def test_what_is_no_secret_of_the_users_is_refused_and_a_value_typed_by_mistake_not_shown(
    name: str, sentence: str
) -> None:
    with pytest.raises(UsageError, match=sentence) as refusal:
        check_secret_names(["HF_TOKEN", name], {"FOO": "1"})
    assert "sentinel" not in str(refusal.value)


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
