"""The contract between the stack and its readers."""

import json
from typing import Any

import pytest

from infra.outputs import ContractError, Queue, from_outputs, stack_outputs

QUEUE: dict[str, Any] = {
    "name": "c5a-large-spot",
    "arn": "arn:aws:batch:us-east-1:123456789012:job-queue/c5a-large-spot",
    "compute_environment": "c5a-large-spot-1234567",
    "instance_type": "c5a.large",
    "purchase": "spot",
    "vcpus": 2,
    "memory_mib": 4096,
    "gpus": 0,
    "gpu_model": None,
    "architecture": "x86_64",
    "max_vcpus": 2000,
    "fair_share": False,
}
VALUES: dict[str, Any] = {
    "region": "us-east-1",
    "account_id": "123456789012",
    "queue_names": ["c5a-large-spot"],
    "queues": {"c5a-large-spot": QUEUE},
    "job_role_arn": "arn:aws:iam::123456789012:role/job",
    "execution_role_arn": "arn:aws:iam::123456789012:role/execution",
    "submitter_policy_arn": "arn:aws:iam::123456789012:policy/submitter",
    "log_group": "jobs",
    "ledger_table": "ledger",
    "secret_arn": "arn:aws:secretsmanager:us-east-1:123456789012:secret:s",
    "artifacts_bucket": None,
    "image_repository": None,
}


def test_what_the_program_exports_can_be_read_back() -> None:
    outputs = from_outputs(json.loads(json.dumps(stack_outputs(**VALUES))))
    assert outputs.queues["c5a-large-spot"] == Queue(**QUEUE)
    assert outputs.queue_names == ("c5a-large-spot",)


def test_the_program_cannot_forget_or_invent_a_key() -> None:
    with pytest.raises(TypeError, match="region"):
        stack_outputs(**{key: value for key, value in VALUES.items() if key != "region"})
    with pytest.raises(TypeError, match="colour"):
        stack_outputs(**VALUES, colour="red")


def test_keys_of_a_later_stack_are_ignored() -> None:
    later = stack_outputs(**{**VALUES, "queues": {"c5a-large-spot": {**QUEUE, "price": 1}}}) | {"shiny": True}
    assert from_outputs(later).queues["c5a-large-spot"].vcpus == 2


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"schema_version": 2}, "version 2"),
        ({"secret_arn": "[secret]"}, "secret_arn masked"),
        ({"queues": ["c5a-large-spot"]}, "has something else than it should as queues"),
        ({"queues": {"c5a-large-spot": 1}}, "has something else than it should as queues"),
        ({"queue_names": 3}, "as queue_names"),
        ({"queue_names": [3]}, "as queue_names"),
        ({"region": None, "account_id": 123}, "The contract .* as account_id, region"),
        ({"artifacts_bucket": 1}, "as artifacts_bucket"),
        ({"queues": {"c5a-large-spot": {**QUEUE, "memory_mib": None}}}, "Queue c5a-large-spot .* as memory_mib"),
        ({"queues": {"c5a-large-spot": {**QUEUE, "gpus": True}}}, "Queue c5a-large-spot .* as gpus"),
        ({"queues": {"c5a-large-spot": {**QUEUE, "fair_share": 1}}}, "Queue c5a-large-spot .* as fair_share"),
        ({"queues": {"c5a-large-spot": {"name": "c5a-large-spot"}}}, "Queue c5a-large-spot lacks"),
    ],
)
def test_outputs_that_cannot_be_read_are_refused_in_one_sentence(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ContractError, match=sentence):
        from_outputs(stack_outputs(**VALUES) | change)


def test_another_stacks_outputs_are_not_taken_for_ours() -> None:
    with pytest.raises(ContractError, match="not outputs of an rl-batch stack"):
        from_outputs({"bucket": "x"})


def test_a_missing_key_is_named() -> None:
    outputs = stack_outputs(**VALUES)
    del outputs["ledger_table"]
    with pytest.raises(ContractError, match="ledger_table"):
        from_outputs(outputs)


def test_an_output_that_is_null_may_be_missing_because_pulumi_leaves_it_out() -> None:
    outputs = {key: value for key, value in stack_outputs(**VALUES).items() if value is not None}
    assert from_outputs(outputs).image_repository is None
