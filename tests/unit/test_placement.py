"""Where jobs go, and what AWS says when they cannot go anywhere."""

from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.batch.placement import (
    UNDETERMINED_AFTER_SECONDS,
    Host,
    Launch,
    Need,
    Offer,
    Wait,
    place,
    usable_memory_mib,
)


@dataclass(frozen=True)
class Type:
    name: str
    vcpus: int
    memory_mib: int
    gpus: int = 0


C5A = Type("c5a.large", 2, 4096)
C6G = Type("c6g.medium", 1, 2048)
R5AD = Type("r5ad.large", 2, 16384)
G4DN = Type("g4dn.xlarge", 4, 16384, gpus=1)


def need(vcpus: int = 1, memory_mib: int = 1800, gpus: int = 0) -> Need:
    return Need(vcpus=vcpus, memory_mib=memory_mib, gpus=gpus)


def host(hardware: Type, name: str = "i-1", environment: str = "one") -> Host:
    return Host(id=name, container_instance_arn=f"arn:{name}", environment=environment, hardware=hardware)


OFFER = Offer(environment="one", enabled=True, valid=True, types=(C5A,), max_vcpus=4, vcpus=0, with_room=())


def reason(*offers: Offer, job: Need | None = None) -> str:
    where = place(job or need(), offers)
    assert isinstance(where, Wait)
    return str(where)


@pytest.mark.parametrize(
    ("nominal", "usable"), [(2048, 1901), (4096, 3704), (8192, 7680), (16384, 15731), (65536, 62924), (1024, 950)]
)
def test_the_agent_registers_less_memory_than_the_instance_nominally_has(nominal: int, usable: int) -> None:
    assert usable_memory_mib(nominal) == usable


@given(st.integers(min_value=512, max_value=1 << 20))
def test_usable_memory_is_always_some_and_less_than_nominal(nominal: int) -> None:
    assert 0.85 * nominal < usable_memory_mib(nominal) < nominal


@pytest.mark.parametrize(
    ("hardware", "job", "times"),
    [
        (C5A, need(memory_mib=2000), 1),
        (C5A, need(memory_mib=1800), 2),
        (C6G, need(memory_mib=2000), 0),
        (C6G, need(memory_mib=1800), 1),
        (G4DN, need(memory_mib=1000), 4),
        (G4DN, need(memory_mib=1000, gpus=1), 1),
        (R5AD, need(vcpus=2, memory_mib=1000), 1),
        (C5A, need(vcpus=3, memory_mib=100), 0),
    ],
)
def test_a_host_holds_jobs_until_vcpus_memory_or_gpus_run_out(hardware: Type, job: Need, times: int) -> None:
    """2000 MiB on a c6g.medium, CleanRL's default on one of its queues, is never placed."""
    one, held = host(hardware), 0
    while one.has_room(job):
        one.take(job)
        held += 1
    assert held == times
    assert job.fits(hardware) is (times > 0)


def test_a_host_with_room_comes_before_a_new_instance() -> None:
    one = host(C5A)
    assert place(need(), [replace(OFFER, with_room=[one], vcpus=2)]) is one


def test_an_instance_is_started_while_the_environments_vcpus_allow_it() -> None:
    full = host(C5A)
    full.take(need(vcpus=2))
    assert place(need(), [replace(OFFER, with_room=[full], vcpus=2)]) == Launch("one", C5A)
    assert place(need(), [replace(OFFER, with_room=[full], vcpus=4)]) == Wait()


def test_the_smallest_type_that_fits_is_started() -> None:
    offer = replace(OFFER, types=(R5AD, C5A))
    assert place(need(), [offer]) == Launch("one", C5A)
    assert place(need(memory_mib=8000), [offer]) == Launch("one", R5AD)


def test_the_second_environment_is_used_when_the_first_is_full_closed_or_without_capacity() -> None:
    second = replace(OFFER, environment="two")
    for first in (
        replace(OFFER, vcpus=4),
        replace(OFFER, enabled=False),
        replace(OFFER, valid=False),
        replace(OFFER, lacks_capacity=True),
        replace(OFFER, types=(C6G,), max_vcpus=0),
    ):
        assert place(need(), [first, second]) == Launch("two", C5A)
    assert place(need(), [OFFER, second]) == Launch("one", C5A)


def test_a_host_that_is_there_is_used_although_ec2_gives_no_more_instances() -> None:
    one = host(C5A)
    assert place(need(), [replace(OFFER, with_room=[one], lacks_capacity=True)]) is one


def test_reasons_for_waiting_are_in_the_words_of_aws() -> None:
    assert reason(OFFER, job=need(memory_mib=4000)) == (
        "MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT - The job resource requirement (vCPU/memory/GPU) is higher than "
        "that can be met by the CE(s) attached to the job queue."
    )
    assert reason(replace(OFFER, max_vcpus=1)) == (
        "MISCONFIGURATION:COMPUTE_ENVIRONMENT_MAX_RESOURCE - CE(s) associated with the job queue cannot meet the CPU "
        "requirement of the job."
    )
    assert reason(replace(OFFER, lacks_capacity=True)) == (
        "CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY - Service cannot fulfill the capacity requested for instance type "
        "[c5a.large]"
    )
    assert reason(replace(OFFER, valid=False)) == ("ACTION_REQUIRED - CE(s) associated with the job queue are invalid.")
    assert reason(replace(OFFER, enabled=False)) == (
        "ACTION_REQUIRED - CE(s) associated with the job queue are disabled."
    )


def test_an_environment_whose_role_or_zones_will_not_do_is_passed_over_for_the_next() -> None:
    second = replace(OFFER, environment="two")
    for first in (replace(OFFER, may_not_start=True), replace(OFFER, not_offered=frozenset({"c5a.large"}))):
        assert place(need(), [first, second]) == Launch("two", C5A)
        assert reason(first)


def test_of_an_environments_types_only_those_are_started_that_its_zones_have() -> None:
    offer = replace(OFFER, types=(C5A, R5AD), not_offered=frozenset({"c5a.large"}))
    assert place(need(), [offer]) == Launch("one", R5AD)
    assert reason(replace(offer, types=(C5A,))).startswith("MISCONFIGURATION:EC2_INSTANCE_CONFIGURATION_UNSUPPORTED - ")
    assert reason(replace(offer, types=(C5A,)), job=need(vcpus=8)).startswith("MISCONFIGURATION:JOB_RESOURCE_REQUIREM")


def test_the_role_is_named_only_when_no_environment_is_open_with_a_better_one() -> None:
    without = replace(OFFER, may_not_start=True)
    assert reason(without, replace(OFFER, enabled=False)).startswith("MISCONFIGURATION:SERVICE_ROLE_PERMISSIONS ")
    assert reason(without, replace(OFFER, lacks_capacity=True)).startswith("CAPACITY:")
    assert reason(without, replace(OFFER, types=(C6G,)), job=need(vcpus=2)).startswith("MISCONFIGURATION:JOB_RESOURCE")
    assert reason(replace(without, valid=False)).startswith("ACTION_REQUIRED - ")


def test_an_instance_that_has_not_joined_is_waited_for_and_no_other_is_started() -> None:
    joining = replace(OFFER, joining=[host(C5A)], vcpus=2)
    wait = place(need(), [joining, replace(OFFER, environment="two")])
    assert isinstance(wait, Wait)
    assert str(wait) == "UNDETERMINED - Batch job is blocked, root cause is undetermined."
    assert wait.after_seconds == UNDETERMINED_AFTER_SECONDS
    assert place(need(memory_mib=8000), [replace(joining, types=(C5A, R5AD))]) == Launch("one", R5AD)


def test_a_job_that_only_waits_for_its_turn_has_no_reason() -> None:
    assert reason(replace(OFFER, vcpus=4)) == ""


jobs = st.builds(Need, vcpus=st.integers(1, 4), memory_mib=st.integers(4, 16000), gpus=st.integers(0, 1))


@given(st.lists(st.tuples(jobs, st.booleans()), max_size=60))
def test_no_sequence_of_jobs_overbooks_a_host_or_the_environment(steps: list[tuple[Need, bool]]) -> None:
    """Each step places a job, or first takes the oldest away; what is free is at all times what is not taken."""
    hosts: list[Host] = []
    placed: list[tuple[Host, Need]] = []
    for job, ends_one in steps:
        if ends_one and placed:
            there, gone = placed.pop(0)
            there.give_back(gone)
        offer = replace(
            OFFER, types=(C5A, G4DN), max_vcpus=10, vcpus=sum(h.hardware.vcpus for h in hosts), with_room=hosts
        )
        where = place(job, [offer])
        if isinstance(where, Launch):
            hosts.append(where_host := host(G4DN if where.hardware.gpus else C5A, f"i-{len(hosts)}"))
        elif isinstance(where, Host):
            where_host = where
        else:
            continue
        where_host.take(job)
        placed.append((where_host, job))
        assert sum(h.hardware.vcpus for h in hosts) <= 10
        for each in hosts:
            on_it = [taken for there, taken in placed if there is each]
            assert each.free_vcpus == each.hardware.vcpus - sum(one.vcpus for one in on_it) >= 0
            assert each.free_memory_mib >= 0
            assert each.free_gpus == each.hardware.gpus - sum(one.gpus for one in on_it) >= 0
