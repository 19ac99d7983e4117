"""Where a secret's value is looked for before a sweep is kept, shown or handed on."""

import pytest

from submitter.errors import UsageError
from submitter.hidden import readable
from submitter.secrets import Secrets
from submitter.sweep import RunTable

VALUE = "sentinel-5f0c1e"
NO_RUNS = RunTable()


def check(*values: object, runs: RunTable = NO_RUNS, value: str = VALUE) -> None:
    Secrets({"HF_TOKEN": value}).check_hidden(readable(*values, runs=runs))


@pytest.mark.parametrize(
    "value",
    [VALUE, f"--{VALUE}=1", [1, None, ("x", VALUE)], {"name": VALUE}, {VALUE: "a name"}, {"options": {"env": [VALUE]}}],
)
def test_it_is_found_wherever_a_text_stands(value: object) -> None:
    with pytest.raises(UsageError):
        check("python train.py", value)


def test_it_is_found_among_the_values_of_the_runs() -> None:
    with pytest.raises(UsageError):
        check(runs=RunTable.product([("a", "b"), ("a", VALUE)], [1]))


@pytest.mark.parametrize(
    "command",
    [
        "t 'sent''inel-5f0c1e'",
        't "sentinel"-5f0c1e',
        "t sent\\inel-5f0c1e",
        "t sentinel-\\\n5f0c1e",
        "t 's' sent''inel-5f0c1e '",
    ],
)
def test_it_is_found_in_what_a_shell_makes_of_its_quotes(command: str) -> None:
    with pytest.raises(UsageError):
        check(command)


def test_a_value_with_quotes_is_found_where_they_are_quoted() -> None:
    with pytest.raises(UsageError):
        check("""t 'it'"'"'s a "secret"'""", value='it\'s a "secret"')


def test_other_texts_pass() -> None:
    check("python train.py 'sentinel'", {"A": "sentinel-5f0c1f"}, runs=RunTable.product([("sentinel",)], [1]))
