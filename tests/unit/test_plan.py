import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import botocore.session
import pytest
from botocore.validate import ParamValidator
from hypothesis import given, settings
from hypothesis import strategies as st

from infra.outputs import StackOutputs
from submitter.errors import UsageError
from submitter.grid import Axis, grid_rows
from submitter.numbers import NumberSet
from submitter.plan import (
    MAX_OVERRIDES,
    JobSpec,
    PlannedArray,
    arrays,
    check_attempts,
    default_attempts,
    job_definition,
    submit_request,
    timeout_seconds,
)
from submitter.sweep import NO_ROWS, Runs, RunTable
from submitter.template import Template

CONTRACT = StackOutputs(
    schema_version=1,
    region="us-east-1",
    account_id="123456789012",
    queue_names=(),
    queues={},
    job_role_arn="arn:aws:iam::123456789012:role/job",
    execution_role_arn="arn:aws:iam::123456789012:role/execution",
    submitter_policy_arn="arn:aws:iam::123456789012:policy/submitter",
    log_group="rl-batch-logs",
    ledger_table="ledger",
    secret_arn="arn:aws:secretsmanager:us-east-1:123456789012:secret:values",
    artifacts_bucket=None,
    image_repository=None,
)
SPEC = JobSpec(
    image="vwxyzjn/cleanrl:v1.2",
    vcpus=1,
    memory_mib=1843,
    gpus=0,
    timeout_seconds=57_600,
    attempts=6,
    tags={"sweep": "x"},
)
TEMPLATE = Template.parse("python train.py", ("env-id",))
NONCE = "abcdefghij"


def assert_botocore_accepts(operation: str, request: dict[str, Any]) -> None:
    model = botocore.session.get_session().get_service_model("batch").operation_model(operation)
    assert model.input_shape is not None
    report = ParamValidator().validate(request, model.input_shape)
    assert not report.has_errors(), report.generate_report()


def seeds(count: int) -> Runs:
    return RunTable.product([("CartPole-v1",)], range(1, count + 1)).runs()


def plan(runs: Runs, *, template: Template = TEMPLATE, spec: JobSpec = SPEC) -> list[PlannedArray]:
    return arrays(template, NONCE, runs, spec)


def request(array: PlannedArray, spec: JobSpec = SPEC) -> dict[str, Any]:
    return submit_request(spec, array, name="job-1", queue="c5a-large-spot", definition="definition:3")


def planned_numbers(planned: Sequence[PlannedArray]) -> list[int]:
    return [number for array in planned for number in array.runs.numbers]


def test_the_definition_holds_all_that_sweeps_share_and_nothing_of_one() -> None:
    definition = job_definition(replace(SPEC, gpus=1, secrets={"B": "arn:b", "A": "arn:a"}), CONTRACT)
    assert_botocore_accepts("RegisterJobDefinition", definition)
    name = definition.pop("jobDefinitionName")
    assert re.fullmatch(r"rl-batch-[0-9a-f]{8}-cleanrl-v1-2-[0-9a-f]{6}-[0-9a-f]{12}", name)
    assert definition == {
        "type": "container",
        "platformCapabilities": ["EC2"],
        "propagateTags": True,
        "retryStrategy": {
            "attempts": 6,
            "evaluateOnExit": [
                {"onStatusReason": "Host EC2*", "action": "RETRY"},
                {"onReason": "CannotPullContainerError*", "action": "EXIT"},
                {"onReason": "AGENT*", "action": "RETRY"},
                {"onStatusReason": "Task failed to start*", "action": "RETRY"},
                {"onReason": "*", "action": "EXIT"},
            ],
        },
        "timeout": {"attemptDurationSeconds": 57_600},
        "containerProperties": {
            "image": "vwxyzjn/cleanrl:v1.2",
            "jobRoleArn": "arn:aws:iam::123456789012:role/job",
            "executionRoleArn": "arn:aws:iam::123456789012:role/execution",
            "resourceRequirements": [
                {"type": "VCPU", "value": "1"},
                {"type": "MEMORY", "value": "1843"},
                {"type": "GPU", "value": "1"},
            ],
            "secrets": [{"name": "A", "valueFrom": "arn:a"}, {"name": "B", "valueFrom": "arn:b"}],
            "linuxParameters": {"sharedMemorySize": 921},
            "logConfiguration": {
                "logDriver": "awslogs",
                "options": {"awslogs-group": "rl-batch-logs", "awslogs-region": "us-east-1", "mode": "blocking"},
            },
        },
    }


def test_retry_on_error_changes_the_last_rule_only() -> None:
    rules = job_definition(replace(SPEC, retry_on_error=True), CONTRACT)["retryStrategy"]["evaluateOnExit"]
    assert rules[-1] == {"onReason": "*", "action": "RETRY"}
    assert rules[:-1] == job_definition(SPEC, CONTRACT)["retryStrategy"]["evaluateOnExit"][:-1]


def test_the_definitions_name_is_the_same_in_every_process_and_for_every_sweep() -> None:
    """The hash is of the content alone: not of the order of a mapping, nor of what goes with SubmitJob."""
    name = job_definition(replace(SPEC, secrets={"A": "1", "B": "2"}), CONTRACT)["jobDefinitionName"]
    other = replace(SPEC, secrets={"B": "2", "A": "1"}, environment={"X": "1"}, tags={"sweep": "y"})
    assert job_definition(other, CONTRACT)["jobDefinitionName"] == name
    assert job_definition(SPEC, CONTRACT)["jobDefinitionName"] == "rl-batch-bffc9d73-cleanrl-v1-2-33001d-05999ef3b1f9"


@pytest.mark.parametrize(
    "change",
    [
        {"image": "vwxyzjn/cleanrl:v1.3"},
        {"image": "vwxyzjn/cleanrl:v1-2"},
        {"image": "other/cleanrl:v1.2"},
        {"vcpus": 2},
        {"memory_mib": 1844},
        {"gpus": 1},
        {"timeout_seconds": 60},
        {"attempts": 5},
        {"retry_on_error": True},
        {"secrets": {"A": "arn:a"}},
    ],
)
def test_another_content_is_another_definition(change: dict[str, Any]) -> None:
    names = {job_definition(spec, CONTRACT)["jobDefinitionName"] for spec in (SPEC, replace(SPEC, **change))}
    assert len(names) == 2


@settings(max_examples=60, derandomize=True, deadline=None)
@given(st.text(min_size=1, max_size=255))
def test_every_image_gives_a_name_that_aws_accepts(image: str) -> None:
    name = job_definition(replace(SPEC, image=image), CONTRACT)["jobDefinitionName"]
    assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}", name, re.ASCII)


def test_a_definition_larger_than_aws_takes_is_refused() -> None:
    secrets = {f"NAME_{index}": "arn:aws:secretsmanager:" + "x" * 100 for index in range(200)}
    with pytest.raises(UsageError, match="24,576"):
        job_definition(replace(SPEC, secrets=secrets), CONTRACT)


def test_one_run_is_a_plain_job() -> None:
    [array] = plan(seeds(1))
    sent = request(array)
    assert_botocore_accepts("SubmitJob", sent)
    assert sent == {
        "jobName": "job-1",
        "jobQueue": "c5a-large-spot",
        "jobDefinition": "definition:3",
        "containerOverrides": {"command": array.command},
        "propagateTags": True,
        "tags": {"sweep": "x"},
    }


@pytest.mark.parametrize("count", [2, 10_000])
def test_more_runs_are_one_array(count: int) -> None:
    [array] = plan(seeds(count))
    assert_botocore_accepts("SubmitJob", request(array))
    assert request(array)["arrayProperties"] == {"size": count}
    assert array.runs.numbers == NumberSet(range(1, count + 1))


def test_variables_go_with_the_job_and_parameters_are_never_sent() -> None:
    """With `parameters`, AWS would replace `Ref::name` in the user's text."""
    spec = replace(SPEC, environment={"A": "1", "B": ""})
    [array] = plan(seeds(2), spec=spec, template=Template.parse("echo Ref::x", ("env-id",)))
    sent = request(array, spec)
    assert sent["containerOverrides"]["environment"] == [{"name": "A", "value": "1"}, {"name": "B", "value": ""}]
    assert "parameters" not in sent


@pytest.mark.parametrize("count", [10_001, 20_000, 20_001])
def test_more_than_ten_thousand_runs_become_as_few_arrays_as_hold_them(count: int) -> None:
    planned = plan(seeds(count))
    assert len(planned) == -(-count // 10_000)
    assert planned_numbers(planned) == list(range(1, count + 1))


def test_a_regular_grid_of_ten_thousand_fits_one_array_with_room_to_spare() -> None:
    names = ("env-id", "learning-rate", "gamma")
    axes = [Axis(name, tuple(f"value-{name}-{index}" for index in range(10))) for name in names]
    template = Template.parse("uv run python cleanrl/ppo.py --track", names)
    [array] = plan(RunTable.product(grid_rows(axes), range(1, 11)).runs(), template=template)
    assert len(json.dumps(request(array)["containerOverrides"])) < MAX_OVERRIDES / 2


def scattered(table: RunTable, *, of_a_hundred: int, step: int = 37) -> Runs:
    """Return about so many of a hundred runs, few of them neighbours."""
    return table.runs(NumberSet(n for n in range(1, len(table) + 1) if n * step % 101 <= of_a_hundred))


@settings(max_examples=25, derandomize=True, deadline=None)
@given(st.integers(0, 100), st.integers(1, 100), st.integers(1, 40))
def test_scattered_runs_are_split_without_loss_and_every_part_fits(of_a_hundred: int, step: int, rows: int) -> None:
    table = RunTable.product([(f"Env{index}-v1",) for index in range(rows)], range(1, 4000 // rows + 2))
    runs = scattered(table, of_a_hundred=of_a_hundred, step=step)
    planned = plan(runs)
    assert planned_numbers(planned) == list(runs.numbers)
    assert all(len(json.dumps(request(array)["containerOverrides"])) <= MAX_OVERRIDES for array in planned)


@pytest.mark.parametrize("rows", [1, 100])
def test_a_retry_of_three_thousand_scattered_runs_takes_a_few_arrays(rows: int) -> None:
    table = RunTable.product([(f"Env{index}-v1",) for index in range(rows)], range(1, 10_000 // rows + 1))
    runs = scattered(table, of_a_hundred=30)
    assert len(runs) > 3_000
    assert len(plan(runs)) <= 4


def test_a_long_table_of_rows_is_split_where_it_no_longer_fits() -> None:
    table = RunTable.product([(f"{index}-{'x' * 100}",) for index in range(500)], [1, 2])
    planned = plan(table.runs())
    assert sorted(planned_numbers(planned)) == list(range(1, 1001))
    assert all(len(json.dumps(request(array)["containerOverrides"])) <= MAX_OVERRIDES for array in planned)
    assert len(planned) < 13


def test_each_row_of_a_long_table_is_sent_once_for_all_its_seeds() -> None:
    rows = [(f"{index}-{'x' * 10}",) for index in range(1000)]
    table = RunTable.product(rows, range(1, 11))
    longer = table + RunTable.product(rows, range(11, 21))
    for runs in (table.runs(), longer.runs(NumberSet(range(10_001, 20_001)))):
        planned = plan(runs)
        assert sorted(planned_numbers(planned)) == list(runs.numbers)
        assert len(planned) < 10


@pytest.mark.parametrize(
    ("command", "environment"), [("python " + "x" * 9_000, {}), ("python t.py", {"A": "x" * 9_000}), ("é" * 2_000, {})]
)
def test_a_command_too_long_for_aws_is_refused_before_anything_is_sent(
    command: str, environment: dict[str, str]
) -> None:
    with pytest.raises(UsageError, match="7,168") as refusal:
        plan(
            RunTable.product(NO_ROWS, range(1, 6)).runs(),
            template=Template.parse(command, ()),
            spec=replace(SPEC, environment=environment),
        )
    assert refusal.value.remedy


def test_a_request_larger_than_aws_takes_is_refused() -> None:
    spec = replace(SPEC, tags={f"{index}-" + "é" * 100: "é" * 200 for index in range(50)})
    [array] = plan(seeds(2), spec=spec)
    with pytest.raises(UsageError, match="30,720"):
        request(array, spec)


def test_no_runs_need_no_array() -> None:
    assert plan(RunTable().runs()) == []


@pytest.mark.parametrize(
    ("hours", "seconds"), [(0.5, 1800), (16, 57_600), (0.017, 61), (1 / 60, 60), (10_000, 36_000_000)]
)
def test_time_limits_are_sent_as_they_are_meant(hours: float, seconds: int) -> None:
    assert timeout_seconds(hours) == seconds


@pytest.mark.parametrize("hours", [0.01, 0, -1, float("nan"), float("inf"), 1e9])
def test_time_limits_that_aws_does_not_take_are_refused(hours: float) -> None:
    with pytest.raises(UsageError, match="time limit"):
        timeout_seconds(hours)


def test_attempts_are_more_on_spot_and_between_one_and_ten() -> None:
    assert default_attempts("spot") == 6
    assert default_attempts("on-demand") == 2
    assert [check_attempts(attempts) for attempts in (1, 10)] == [1, 10]
    for attempts in (0, 11):
        with pytest.raises(UsageError, match="1 to 10"):
            check_attempts(attempts)
