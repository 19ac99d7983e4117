"""What AWS refuses about jobs is refused here, by the server, with AWS's error code."""

from typing import Any

from botocore.exceptions import ClientError

HEAD = {"jobName": "name", "jobQueue": "queue", "jobDefinition": "job"}

SUBMISSIONS: dict[str, dict[str, Any]] = {
    "no name": {"jobName": None},
    "an empty name": {"jobName": ""},
    "a name with a dot": {"jobName": "a.b"},
    "a name that begins with a hyphen": {"jobName": "-a"},
    "a name of 129 characters": {"jobName": "a" * 129},
    "an unknown queue": {"jobQueue": "queu"},
    "the ARN of an unknown queue": {"jobQueue": "arn:aws:batch:us-east-1:123456789012:job-queue/other"},
    "a disabled queue": {"jobQueue": "disabled"},
    "an unknown definition": {"jobDefinition": "other"},
    "an unknown revision": {"jobDefinition": "job:2"},
    "an inactive definition": {"jobDefinition": "inactive"},
    "an inactive revision": {"jobDefinition": "inactive:1"},
    "an array of one": {"arrayProperties": {"size": 1}},
    "an array of 10,001": {"arrayProperties": {"size": 10_001}},
    "an empty word in the command": {"containerOverrides": {"command": ["a", ""]}},
    "a variable without a name": {"containerOverrides": {"environment": [{"value": "1"}]}},
    "a variable that is Batch's": {"containerOverrides": {"environment": [{"name": "AWS_BATCH_A", "value": "1"}]}},
    "no vCPU": {"containerOverrides": {"resourceRequirements": [{"type": "VCPU", "value": "0"}]}},
    "half a vCPU": {"containerOverrides": {"resourceRequirements": [{"type": "VCPU", "value": "0.5"}]}},
    "3 MiB": {"containerOverrides": {"resourceRequirements": [{"type": "MEMORY", "value": "3"}]}},
    "no GPU": {"containerOverrides": {"resourceRequirements": [{"type": "GPU", "value": "0"}]}},
    "an unknown resource": {"containerOverrides": {"resourceRequirements": [{"type": "TPU", "value": "1"}]}},
    "one resource twice": {"containerOverrides": {"resourceRequirements": [{"type": "GPU", "value": "1"}] * 2}},
    "a timeout of 59 s": {"timeout": {"attemptDurationSeconds": 59}},
    "no attempts": {"retryStrategy": {"attempts": 0}},
    "11 attempts": {"retryStrategy": {"attempts": 11}},
    "conditions without attempts": {"retryStrategy": {"evaluateOnExit": [{"onReason": "*", "action": "EXIT"}]}},
    "6 conditions": {"retryStrategy": {"attempts": 2, "evaluateOnExit": [{"onReason": "*", "action": "EXIT"}] * 6}},
    "a condition without a pattern": {"retryStrategy": {"attempts": 2, "evaluateOnExit": [{"action": "EXIT"}]}},
    "an asterisk in the middle": {
        "retryStrategy": {"attempts": 2, "evaluateOnExit": [{"onReason": "a*b", "action": "EXIT"}]}
    },
    "an unknown action": {"retryStrategy": {"attempts": 2, "evaluateOnExit": [{"onReason": "*", "action": "STOP"}]}},
    "51 tags": {"tags": {f"key{number}": "" for number in range(51)}},
    "a tag of AWS's": {"tags": {"aws:name": "value"}},
    "a share on a FIFO queue": {"shareIdentifier": "me"},
    "no share on a fair-share queue": {"jobQueue": "fair"},
    "a share with a hyphen": {"jobQueue": "fair", "shareIdentifier": "a-b"},
    "a scheduling priority of 10,000": {"schedulingPriorityOverride": 10_000},
    "a dependency on an unknown job": {"dependsOn": [{"jobId": "no-such-job"}]},
    "21 dependencies": {"dependsOn": [{"jobId": "no-such-job"}] * 21},
    "a sequence that is no array": {"dependsOn": [{"type": "SEQUENTIAL"}]},
    "a multi-node override": {"nodeOverrides": {"numNodes": 2}},
    "more than 30 KiB": {"containerOverrides": {"command": ["x" * 31 * 1024]}},
}


def code_of(call: Any, **request: Any) -> str:
    """Make a call and return the code of its refusal, or `accepted`."""
    try:
        call(**{key: value for key, value in request.items() if value is not None})
    except ClientError as error:
        return str(error.response["Error"]["Code"])
    return "accepted"


def test_submissions_that_aws_refuses_are_refused(lab: Any, queue: Any) -> None:
    """boto3's own validation is off, so that the server refuses; a submission that is fine is one row's difference."""
    policy = lab.batch.create_scheduling_policy(name="shares", fairsharePolicy={})["arn"]
    queue("fair", schedulingPolicyArn=policy)
    queue("disabled", state="DISABLED")
    lab.batch.deregister_job_definition(jobDefinition=lab.define("inactive"))
    answers = {what: code_of(lab.batch.submit_job, **{**HEAD, **changes}) for what, changes in SUBMISSIONS.items()}
    assert {what: code for what, code in answers.items() if code != "ClientException"} == {}
    assert code_of(lab.batch.submit_job, **HEAD) == "accepted"
    assert code_of(lab.batch.submit_job, **{**HEAD, "jobQueue": "fair", "shareIdentifier": "me"}) == "accepted"
    queues = ("queue", "fair", "disabled")
    filters = [{"name": "JOB_NAME", "values": ["*"]}]
    listed = [lab.batch.list_jobs(jobQueue=name, filters=filters)["jobSummaryList"] for name in queues]
    assert [len(jobs) for jobs in listed] == [1, 1, 0]


def test_limits_themselves_are_accepted(lab: Any) -> None:
    for changes in (
        {"jobName": "a" * 128},
        {"arrayProperties": {"size": 2}},
        {"arrayProperties": {"size": 10_000}, "dependsOn": [{"jobId": lab.submit("exec sleep 600")}]},
        {"timeout": {"attemptDurationSeconds": 60}},
        {"retryStrategy": {"attempts": 10, "evaluateOnExit": [{"onReason": "*", "action": "EXIT"}] * 5}},
        {"tags": {f"key{number}": "" for number in range(50)}},
        {"jobDefinition": "job:1"},
        {"jobDefinition": "arn:aws:batch:us-east-1:123456789012:job-definition/job:1"},
        {"jobDefinition": "arn:aws:batch:us-east-1:123456789012:job-definition/job"},
    ):
        assert code_of(lab.batch.submit_job, **{**HEAD, **changes}) == "accepted", changes


def test_other_calls_that_aws_refuses_are_refused(lab: Any) -> None:
    batch, job_id = lab.batch, lab.submit("true")
    by_name = {"name": "JOB_NAME", "values": ["*"]}
    answers = [
        code_of(batch.describe_jobs, jobs=["x"] * 101),
        code_of(batch.list_jobs),
        code_of(batch.list_jobs, jobQueue="other"),
        code_of(batch.list_jobs, jobQueue="queue", arrayJobId=job_id),
        code_of(batch.list_jobs, arrayJobId=job_id),
        code_of(batch.list_jobs, jobQueue="queue", jobStatus="DONE"),
        code_of(batch.list_jobs, jobQueue="queue", maxResults=0),
        code_of(batch.list_jobs, jobQueue="queue", nextToken="not one of ours"),
        code_of(batch.list_jobs, jobQueue="queue", filters=[by_name, by_name]),
        code_of(batch.terminate_job, jobId=job_id),
        code_of(batch.terminate_job, jobId=job_id, reason="x" * 1025),
        code_of(batch.terminate_job, jobId="no-such-job", reason="x"),
        code_of(batch.cancel_job, jobId="no-such-job", reason="x"),
        code_of(batch.cancel_jobs, jobs=[job_id] * 51, reason="x"),
        code_of(batch.terminate_jobs, jobs=[], reason="x"),
        code_of(batch.get_job_queue_snapshot, jobQueue="other"),
    ]
    assert answers == ["ClientException"] * len(answers)
