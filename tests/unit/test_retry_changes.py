"""What a retry changes of what a job is given."""

from dataclasses import replace

import pytest

from submitter.errors import UsageError
from submitter.plan import JobSpec
from submitter.retry import Changes
from tests.queues import C5A_LARGE_SPOT as QUEUE

SPEC = JobSpec(
    image="trainer:1",
    vcpus=1,
    memory_mib=512,
    gpus=0,
    timeout_seconds=3600,
    attempts=6,
    environment={"MODE": "fast"},
    secrets={"WANDB_API_KEY": "arn:WANDB_API_KEY:key-1:", "HF_TOKEN": "arn:HF_TOKEN:key-1:"},
)


def test_without_changes_everything_is_as_it_was() -> None:
    assert Changes().apply(SPEC, QUEUE, "ada") == SPEC


def test_each_change_changes_one_thing() -> None:
    changes = Changes(image="trainer:2", memory_mib=1024, timeout_seconds=60, environment={"WANDB_RESUME": "must"})
    assert changes.apply(SPEC, QUEUE, "ada") == replace(
        SPEC,
        image="trainer:2",
        memory_mib=1024,
        timeout_seconds=60,
        environment={"MODE": "fast", "WANDB_RESUME": "must"},
    )


def test_on_another_queue_the_default_of_attempts_is_that_queues_and_a_gpu_can_be_dropped() -> None:
    on_demand, moved = replace(QUEUE, purchase="on-demand"), Changes(queue=QUEUE.name, gpus=0)
    assert moved.apply(SPEC, on_demand, "ada", before=QUEUE).attempts == 2
    assert moved.apply(replace(SPEC, attempts=2), QUEUE, "ada", before=on_demand).attempts == 6
    assert moved.apply(replace(SPEC, attempts=3), on_demand, "ada", before=QUEUE).attempts == 3
    assert moved.apply(SPEC, on_demand, "ada").attempts == 6, "nobody knows what the default was there"
    assert moved.apply(replace(SPEC, gpus=1), QUEUE, "ada").gpus == 0


def test_keys_that_are_kept_elsewhere_now_are_found_there() -> None:
    changed = Changes(secrets={"HF_TOKEN": "arn:HF_TOKEN:key-2:", "OTHER": "x"}).apply(SPEC, QUEUE, "ada")
    assert changed.secrets == {"WANDB_API_KEY": "arn:WANDB_API_KEY:key-1:", "HF_TOKEN": "arn:HF_TOKEN:key-2:"}


def test_a_queue_with_fair_shares_gets_the_owners() -> None:
    assert Changes().apply(SPEC, replace(QUEUE, fair_share=True), "ada-l").share == "adal"
    assert Changes().apply(replace(SPEC, share="adal"), QUEUE, "ada-l").share is None


@pytest.mark.parametrize("spec", [replace(SPEC, gpus=1), replace(SPEC, vcpus=4), replace(SPEC, memory_mib=8192)])
def test_what_the_queue_can_never_place_is_refused(spec: JobSpec) -> None:
    with pytest.raises(UsageError):
        Changes(queue=QUEUE.name).apply(spec, QUEUE, "ada")
