import json

from hypothesis import given, settings
from hypothesis import strategies as st

from submitter.numbers import NumberSet
from submitter.sweep import NO_ROWS, RunTable
from submitter.template import Template
from submitter.wrapper import wrapper_argv

TEMPLATE = Template.parse("echo {a}'{a}'", ("a",))


@settings(max_examples=60, derandomize=True, deadline=None)
@given(st.lists(st.text(st.characters(exclude_characters="\0", codec="utf-8")), min_size=1))
def test_no_argument_is_empty_and_all_are_text_for_a_json_request(values: list[str]) -> None:
    """AWS Batch refuses a container command with an empty argument."""
    argv = wrapper_argv(TEMPLATE, "nonce", RunTable.product([(value,) for value in values], [1]).runs(), vcpus=1)
    assert all(argv)
    assert json.loads(json.dumps(argv)) == argv


def test_the_shell_text_is_the_same_for_every_sweep_and_short() -> None:
    """What differs is in the arguments, so the text can be read once and for all."""
    one = wrapper_argv(TEMPLATE, "nonce", RunTable.product([("x",)], [1]).runs(), vcpus=1)
    other = wrapper_argv(Template.parse("python t.py", ()), "n", RunTable.product(NO_ROWS, [5]).runs(), vcpus=4)
    assert one[:4] == other[:4]
    assert len(json.dumps(one[2])) < 1500


def test_only_the_values_that_the_runs_use_are_sent() -> None:
    table = RunTable.product([(f"value-{index}",) for index in range(100)], range(1, 4))
    argv = wrapper_argv(TEMPLATE, "nonce", table.runs(NumberSet([7, 107, 250])), vcpus=1)
    assert [argument for argument in argv if argument.startswith("value-")] == ["value-6", "value-49"]


def test_the_values_of_an_extended_sweep_are_sent_once() -> None:
    rows = [("value-1",), ("value-2",)]
    table = RunTable.product(rows, [1, 2]) + RunTable.product(rows, [5])
    assert wrapper_argv(TEMPLATE, "nonce", table.runs(), vcpus=1).count("value-1") == 1
