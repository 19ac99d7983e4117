import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra.naming import NameCollisionError, queue_name, queue_names, resource_prefix, slug, storage_name


def test_queue_names_are_the_ones_that_people_type() -> None:
    assert queue_names(["g4dn.4xlarge", "c5a.large"]) == [
        "c5a-large",
        "c5a-large-spot",
        "g4dn-4xlarge",
        "g4dn-4xlarge-spot",
    ]


def test_a_prefix_keeps_two_stacks_apart() -> None:
    assert queue_name("c5a.large", spot=True, prefix="alice") == "alice-c5a-large-spot"


@pytest.mark.parametrize("types", [["a.b-c", "a-b.c"], ["c5a.large", "c5a.large-spot"]])
def test_types_that_would_share_a_queue_are_found(types: list[str]) -> None:
    with pytest.raises(NameCollisionError, match="would share the queue"):
        queue_names(types)


def test_a_stack_name_that_batch_takes_is_left_as_it_is() -> None:
    assert resource_prefix("rl-batch", "dev") == "rl-batch-dev"


@given(st.text(min_size=1, max_size=200))
def test_a_slug_has_only_characters_that_batch_takes_and_fits(text: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,40}", slug(text, 40))


@pytest.mark.parametrize(("one", "other"), [("a.b", "a-b"), ("a.b", "a:b"), ("x" * 60, "x" * 61)])
def test_texts_that_differ_have_slugs_that_differ(one: str, other: str) -> None:
    assert slug(one, 40) != slug(other, 40)


@given(st.text(min_size=1, max_size=200))
def test_the_names_of_buckets_and_repositories_have_only_characters_that_both_take(stack: str) -> None:
    name = storage_name(f"{resource_prefix('rl-batch', stack)}-artifacts")
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name)
    assert len(name) + 8 <= 63
