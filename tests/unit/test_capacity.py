from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infra.outputs import Queue
from submitter.capacity import (
    check_fits,
    default_gpus,
    default_memory_mib,
    runs_at_once,
    runs_per_instance,
    usable_memory_mib,
)
from submitter.errors import UsageError
from tests.queues import C5A_LARGE_SPOT

CPU = replace(C5A_LARGE_SPOT, max_vcpus=2000)
GPU = replace(CPU, name="g4dn-xlarge", instance_type="g4dn.xlarge", vcpus=4, memory_mib=16384, gpus=1, gpu_model="T4")


@pytest.mark.parametrize(
    ("nominal", "registered"), [(2048, 1901), (4096, 3704), (8192, 7680), (16384, 15731), (65536, 62259)]
)
def test_what_is_said_to_be_usable_is_no_more_than_ecs_agents_were_seen_to_register(
    nominal: int, registered: int
) -> None:
    assert registered * 0.93 < usable_memory_mib(nominal) <= registered


def test_the_figures_known_from_use_hold() -> None:
    """On c5a.large jobs of 1800 MiB run two at once and one of 2000 alone; 2000 on c6g.medium is never placed."""
    assert runs_per_instance(CPU, vcpus=1, memory_mib=1800, gpus=0) == 2
    assert runs_per_instance(CPU, vcpus=1, memory_mib=2000, gpus=0) == 1
    with pytest.raises(UsageError, match="2000 MiB"):
        check_fits(replace(CPU, vcpus=1, memory_mib=2048), vcpus=1, memory_mib=2000, gpus=0)


@settings(max_examples=60, derandomize=True, deadline=None)
@given(st.integers(1, 10**7), st.integers(1, 10**4))
def test_more_memory_never_means_less_of_it_usable(nominal: int, more: int) -> None:
    assert 0 <= usable_memory_mib(nominal) <= usable_memory_mib(nominal + more)
    assert usable_memory_mib(nominal) < nominal


@settings(max_examples=100, derandomize=True, deadline=None)
@given(st.integers(1, 192), st.integers(2048, 10**6), st.integers(0, 8), st.data())
def test_runs_with_the_default_memory_fill_an_instance_and_fit(
    vcpus: int, memory_mib: int, gpus: int, data: st.DataObject
) -> None:
    queue = replace(CPU, vcpus=vcpus, memory_mib=memory_mib, gpus=gpus)
    asked = {"vcpus": data.draw(st.integers(1, vcpus)), "gpus": data.draw(st.integers(0, gpus))}
    memory = default_memory_mib(queue, **asked)
    check_fits(queue, **asked, memory_mib=memory)
    by_others = [vcpus // asked["vcpus"], *([gpus // asked["gpus"]] if asked["gpus"] else [])]
    assert runs_per_instance(queue, **asked, memory_mib=memory) == min(by_others)


def test_the_default_memory_is_the_larger_share_by_vcpus_or_gpus() -> None:
    assert default_memory_mib(CPU, 1, 0) == usable_memory_mib(4096) // 2
    assert default_memory_mib(GPU, 1, 1) == usable_memory_mib(16384)
    assert default_memory_mib(GPU, 1, 0) == usable_memory_mib(16384) // 4


def test_a_gpu_queue_gives_a_run_one_gpu() -> None:
    assert default_gpus(GPU) == default_gpus(replace(GPU, gpus=4)) == 1
    assert default_gpus(CPU) == 0


@pytest.mark.parametrize(
    ("queue", "asked", "message"),
    [
        (CPU, {"vcpus": 3}, "Ask for at most 2"),
        (CPU, {"vcpus": 0}, "at least 1 vCPU"),
        (CPU, {"gpus": 1}, "no GPU"),
        (CPU, {"gpus": -1}, "-1 GPUs"),
        (GPU, {"gpus": 2}, "Ask for at most 1"),
        (CPU, {"memory_mib": 4096}, f"Ask for at most {usable_memory_mib(4096)}"),
        (CPU, {"memory_mib": usable_memory_mib(4096) + 1}, "do not fit"),
        (CPU, {"memory_mib": 3}, "at least 4 MiB"),
    ],
)
def test_what_can_never_be_placed_is_refused_with_the_largest_that_can(
    queue: Queue, asked: dict[str, int], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        check_fits(queue, **{"vcpus": 1, "memory_mib": 512, "gpus": 0, **asked})


def test_the_largest_that_can_be_placed_is_accepted() -> None:
    check_fits(CPU, vcpus=2, memory_mib=usable_memory_mib(4096), gpus=0)
    check_fits(GPU, vcpus=4, memory_mib=usable_memory_mib(16384), gpus=1)


def test_as_many_runs_at_once_as_the_instances_within_the_limit_hold() -> None:
    assert runs_at_once(CPU, vcpus=1, memory_mib=1800, gpus=0) == 2000
    assert runs_at_once(CPU, vcpus=1, memory_mib=2000, gpus=0) == 1000
    assert runs_at_once(replace(GPU, max_vcpus=10), vcpus=1, memory_mib=1000, gpus=1) == 2
