"""What happens to one job, from SubmitJob to its end and until it is forgotten."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

DAY = 24 * 3600
HOST_LOST = [{"onStatusReason": "Host EC2*", "action": "RETRY"}, {"onReason": "*", "action": "EXIT"}]


def test_a_job_runs_and_is_described_as_aws_describes_it(lab: Any) -> None:
    before = int(time.time() * 1000)
    job_id = lab.submit("echo out; echo err >&2; printf unfinished")
    job = lab.ended(job_id)
    assert job["status"] == "SUCCEEDED"
    assert job["statusReason"] == "Essential container in task exited"
    assert before - 1000 <= job["createdAt"] <= job["startedAt"] <= job["stoppedAt"] <= time.time() * 1000
    (attempt,) = job["attempts"]
    assert attempt["statusReason"] == "Essential container in task exited"
    assert attempt["container"]["exitCode"] == job["container"]["exitCode"] == 0
    assert ":task/" in attempt["container"]["taskArn"]
    assert ":container-instance/" in attempt["container"]["containerInstanceArn"]
    task_id = attempt["container"]["taskArn"].rpartition("/")[2]
    assert attempt["container"]["logStreamName"] == f"job/default/{task_id}"
    assert lab.output(job_id) == ["out", "err", "unfinished"]


def test_a_job_passes_through_the_states_of_batch(lab: Any, tmp_path: Path) -> None:
    go_on = tmp_path / "go-on"
    job_id = lab.submit(f"until [ -e {go_on} ]; do sleep 0.02; done")
    assert lab.job(job_id)["status"] in {"SUBMITTED", "PENDING", "RUNNABLE", "STARTING", "RUNNING"}
    running = lab.reaches(job_id, "RUNNING")
    assert running["container"]["logStreamName"].startswith("job/default/")
    assert running["attempts"] == []
    assert "exitCode" not in running["container"]
    go_on.touch()
    assert lab.ended(job_id)["status"] == "SUCCEEDED"


def test_output_can_be_read_while_the_job_runs(lab: Any) -> None:
    job_id = lab.submit("echo begun; exec sleep 600")
    stream = lab.reaches(job_id, "RUNNING")["container"]["logStreamName"]
    assert lab.wait_until(lambda: lab.log(stream)) == ["begun"]
    assert lab.job(job_id)["status"] == "RUNNING"


def test_a_job_finds_its_variables_and_nothing_of_the_emulators_own(lab: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SENTINEL_OF_THE_EMULATOR", "leaked")
    definition = lab.define(
        "variables", environment=[{"name": "KEPT", "value": "1"}, {"name": "CHANGED", "value": "1"}]
    )
    job_id = lab.submit(
        "env; pwd; command -v python",
        jobDefinition=definition,
        containerOverrides={"environment": [{"name": "CHANGED", "value": "2"}, {"name": "ADDED", "value": "a  b"}]},
    )
    lines = lab.output(job_id)
    for line in (
        "KEPT=1",
        "CHANGED=2",
        "ADDED=a  b",
        f"AWS_BATCH_JOB_ID={job_id}",
        "AWS_BATCH_JOB_ATTEMPT=1",
        "AWS_BATCH_JQ_NAME=queue",
        "AWS_BATCH_CE_NAME=queue-environment",
        f"AWS_ENDPOINT_URL={lab.server.url}",
        str(Path(__file__).parents[3]),
    ):
        assert line in lines
    assert not [line for line in lines if "SENTINEL" in line or "AWS_BATCH_JOB_ARRAY" in line]
    assert lines[-1].endswith("/python")
    assert lab.job(job_id)["container"]["environment"] == [
        {"name": "KEPT", "value": "1"},
        {"name": "CHANGED", "value": "2"},
        {"name": "ADDED", "value": "a  b"},
    ]


def test_overrides_are_merged_as_aws_merges_them(lab: Any) -> None:
    definition = lab.define(
        "merged", timeout={"attemptDurationSeconds": 100}, retryStrategy={"attempts": 3}, command=["echo", "defined"]
    )
    plain = lab.ended(lab.submit(jobDefinition=definition))
    assert (plain["timeout"], plain["retryStrategy"]["attempts"]) == ({"attemptDurationSeconds": 100}, 3)
    assert plain["container"]["command"] == ["echo", "defined"]
    changed = lab.ended(
        lab.submit(
            jobDefinition=definition,
            timeout={"attemptDurationSeconds": 60},
            retryStrategy={"attempts": 1},
            propagateTags=True,
            tags={"a": "b"},
            containerOverrides={"command": ["echo"], "resourceRequirements": [{"type": "MEMORY", "value": "900"}]},
        )
    )
    assert (changed["timeout"], changed["retryStrategy"]["attempts"]) == ({"attemptDurationSeconds": 60}, 1)
    assert (changed["propagateTags"], changed["tags"]) == (True, {"a": "b"})
    assert {each["type"]: each["value"] for each in changed["container"]["resourceRequirements"]} == {
        "VCPU": "1",
        "MEMORY": "900",
    }


def test_placeholders_are_replaced_only_when_there_are_parameters(lab: Any) -> None:
    command = {"command": ["echo", "Ref::word", "Ref::other"]}
    assert lab.output(lab.submit(containerOverrides=command)) == ["Ref::word Ref::other"]
    assert lab.output(lab.submit(containerOverrides=command, parameters={"word": "hello"})) == ["hello Ref::other"]


def test_a_job_without_a_revision_gets_the_latest_active_one(lab: Any) -> None:
    lab.define("job", command=["echo", "second"])
    third = lab.define("job", command=["echo", "third"])
    lab.batch.deregister_job_definition(jobDefinition=third)
    assert lab.output(lab.submit()) == ["second"]


def test_a_failing_command_fails_the_job_with_its_exit_code(lab: Any) -> None:
    job = lab.ended(lab.submit("exit 3"))
    assert (job["status"], job["container"]["exitCode"]) == ("FAILED", 3)
    killed = lab.ended(lab.submit("kill -KILL $$"))
    assert (killed["status"], killed["container"]["exitCode"]) == ("FAILED", 137)


def test_a_job_that_says_nothing_has_an_empty_log_stream(lab: Any) -> None:
    assert lab.output(lab.submit("true")) == []


def test_each_attempt_has_a_log_stream_of_its_own(lab: Any) -> None:
    job = lab.ended(lab.submit("echo try $AWS_BATCH_JOB_ATTEMPT; exit 5", retryStrategy={"attempts": 3}))
    assert job["status"] == "FAILED"
    streams = [attempt["container"]["logStreamName"] for attempt in job["attempts"]]
    assert [lab.log(stream) for stream in streams] == [["try 1"], ["try 2"], ["try 3"]]
    assert job["container"]["logStreamName"] == streams[-1]


def test_a_later_attempt_may_succeed(lab: Any) -> None:
    job = lab.ended(lab.submit("[ $AWS_BATCH_JOB_ATTEMPT = 2 ]", retryStrategy={"attempts": 5}))
    assert (job["status"], len(job["attempts"])) == ("SUCCEEDED", 2)


def test_a_lost_host_is_retried_on_another_and_an_exit_code_is_not(lab: Any) -> None:
    strategy = {"attempts": 5, "evaluateOnExit": HOST_LOST}
    job_id = lab.submit("[ $AWS_BATCH_JOB_ATTEMPT = 1 ] && exec sleep 600; exit 1", retryStrategy=strategy)
    lab.reaches(job_id, "RUNNING")
    assert lab.server.loop.call(lab.server.batch.scheduler.reclaim, job_id) == [job_id]
    job = lab.ended(job_id)
    lost, failed = job["attempts"]
    assert lost["statusReason"].startswith("Host EC2 (instance i-")
    assert lost["statusReason"].endswith(") terminated.")
    assert "exitCode" not in lost["container"]
    assert failed["container"]["exitCode"] == 1
    assert lost["container"]["containerInstanceArn"] != failed["container"]["containerInstanceArn"]


def test_a_timeout_ends_the_attempt_and_is_not_retried(lab: Any) -> None:
    job_id = lab.submit("exec sleep 600", timeout={"attemptDurationSeconds": 60}, retryStrategy={"attempts": 3})
    lab.reaches(job_id, "RUNNING")
    lab.server.control.advance(59)
    assert lab.job(job_id)["status"] == "RUNNING"
    lab.server.control.advance(2)
    job = lab.ended(job_id)
    assert (job["status"], job["statusReason"]) == ("FAILED", "Job attempt duration exceeded timeout")
    assert len(job["attempts"]) == 1


def test_terminate_asks_first_and_kills_after_half_a_minute(lab: Any, tmp_path: Path) -> None:
    script = f"trap {{}} TERM; echo > {tmp_path}/{{}}; while :; do sleep 0.02; done"
    polite = lab.submit(script.format("'echo asked; exit 7'", "polite"), retryStrategy={"attempts": 3})
    deaf = lab.submit(script.format("''", "deaf"))
    for job_id in (polite, deaf):
        lab.reaches(job_id, "RUNNING")
    lab.wait_until(lambda: (tmp_path / "polite").exists() and (tmp_path / "deaf").exists())
    lab.batch.terminate_job(jobId=polite, reason="enough of it")
    job = lab.ended(polite)
    assert (job["status"], job["statusReason"], job["isTerminated"]) == ("FAILED", "enough of it", True)
    assert (job["container"]["exitCode"], len(job["attempts"])) == (7, 1)
    assert lab.output(polite) == ["asked"]
    lab.batch.terminate_job(jobId=deaf, reason="enough")
    lab.server.control.advance(29)
    assert lab.job(deaf)["status"] == "RUNNING"
    lab.server.control.advance(2)
    assert lab.ended(deaf)["container"]["exitCode"] == 137


def test_cancel_ends_what_waits_and_says_nothing_about_what_runs(lab: Any) -> None:
    running = lab.submit("exec sleep 600")
    lab.reaches(running, "RUNNING")
    waiting = lab.submit("true", containerOverrides={"resourceRequirements": [{"type": "MEMORY", "value": "90000"}]})
    lab.reaches(waiting, "RUNNABLE")
    for job_id in (running, waiting):
        lab.batch.cancel_job(jobId=job_id, reason="not needed")
    job = lab.ended(waiting)
    assert (job["status"], job["statusReason"], job["isCancelled"]) == ("FAILED", "not needed", True)
    assert job["attempts"] == []
    assert "startedAt" not in job
    left = lab.job(running)
    assert (left["status"], left["isCancelled"]) == ("RUNNING", False)


def test_jobs_are_ended_in_bulk_and_those_that_are_unknown_count_as_ended(lab: Any) -> None:
    first, second = lab.submit("exec sleep 600"), lab.submit("exec sleep 600")
    answer = lab.batch.terminate_jobs(jobs=[first, "no-such-job", second], reason="all")
    assert (answer["successful"], answer["errors"]) == ([first, "no-such-job", second], [])
    assert {lab.ended(job_id)["statusReason"] for job_id in (first, second)} == {"all"}
    assert lab.batch.cancel_jobs(jobs=[first], reason="again")["successful"] == [first]
    assert lab.job(first)["statusReason"] == "all"


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["no-such-program"], 'exec: "no-such-program": executable file not found in $PATH'),
        (["/etc/passwd"], 'exec: "/etc/passwd"'),
        (None, "No command specified"),
    ],
)
def test_a_command_that_cannot_start_fails_as_a_container_does(lab: Any, command: list[str] | None, words: str) -> None:
    job = lab.ended(lab.submit(containerOverrides={"command": command} if command else {}))
    assert (job["status"], job["statusReason"]) == ("FAILED", "Task failed to start")
    assert job["container"]["reason"].startswith("CannotStartContainerError: ")
    assert words in job["container"]["reason"]
    assert "logStreamName" not in job["container"]


def test_a_missing_log_group_keeps_the_container_from_starting(lab: Any) -> None:
    log = {"logDriver": "awslogs", "options": {"awslogs-group": "no-such-group"}}
    job = lab.ended(lab.submit("true", jobDefinition=lab.define("unlogged", logConfiguration=log)))
    assert job["statusReason"] == "Task failed to start"
    assert "The specified log group does not exist." in job["container"]["reason"]


def test_without_a_log_configuration_lines_go_to_the_group_of_batch(lab: Any) -> None:
    job = lab.ended(lab.submit("echo here", jobDefinition=lab.define("default-log", logConfiguration=None)))
    assert lab.log(job["container"]["logStreamName"], "/aws/batch/job") == ["here"]


@pytest.mark.parametrize("member", ["executionRoleArn", "jobRoleArn"])
def test_a_role_that_ecs_may_not_assume_fails_the_attempt(
    lab: Any, role: Callable[[str, str], str], member: str
) -> None:
    other, right = role("other", "ec2"), role("right", "ecs-tasks")
    missing = f"{other}-that-is-not-there"
    for arn in (other, missing):
        job = lab.ended(lab.submit("true", jobDefinition=lab.define("with-role", **{member: arn})))
        assert (job["status"], len(job["attempts"])) == ("FAILED", 1)
        assert job["statusReason"].startswith(f"ECS was unable to assume the role '{arn}' that was provided for this")
        assert "exitCode" not in job["container"]
    job_id = lab.submit("true", jobDefinition=lab.define("with-role", **{member: right}))
    assert lab.ended(job_id)["status"] == "SUCCEEDED"


def test_secrets_are_resolved_by_arn_json_key_and_label(lab: Any, role: Callable[[str, str], str]) -> None:
    secret = lab.aws("secretsmanager").create_secret(Name="keys", SecretString=json.dumps({"KEY": "old"}))
    lab.aws("secretsmanager").put_secret_value(
        SecretId="keys", SecretString=json.dumps({"KEY": "new"}), VersionStages=["mine"]
    )
    definition = lab.define(
        "secret",
        executionRoleArn=role("execution", "ecs-tasks"),
        secrets=[
            {"name": "LABELLED", "valueFrom": f"{secret['ARN']}:KEY:mine:"},
            {"name": "CURRENT", "valueFrom": f"{secret['ARN']}:KEY::"},
            {"name": "WHOLE", "valueFrom": secret["ARN"]},
        ],
    )
    job_id = lab.submit('echo "$LABELLED $CURRENT $WHOLE"', jobDefinition=definition)
    assert lab.output(job_id) == ['new old {"KEY": "old"}']
    assert "old" not in json.dumps(lab.job(job_id))


def test_a_secret_that_is_not_there_fails_the_attempt_in_the_words_of_ecs(
    lab: Any, role: Callable[[str, str], str]
) -> None:
    arn = "arn:aws:secretsmanager:us-east-1:123456789012:secret:none-AbCdEf"
    definition = lab.define(
        "secret",
        executionRoleArn=role("execution", "ecs-tasks"),
        secrets=[{"name": "KEY", "valueFrom": arn}],
    )
    job = lab.ended(lab.submit("true", jobDefinition=definition))
    assert job["status"] == "FAILED"
    assert job["statusReason"].startswith("ResourceInitializationError: unable to pull secrets or registry auth: ")


def test_too_long_overrides_fail_the_job_rather_than_be_refused(lab: Any) -> None:
    for job_id in (lab.submit("x" * 8192), lab.submit("x" * 8192, size=2)):
        job = lab.ended(job_id)
        assert (job["status"], job["statusReason"]) == ("FAILED", "Container Overrides length must be at most 8192")
    assert lab.ended(lab.submit("true " + "#" * 8000))["status"] == "SUCCEEDED"


def test_a_job_is_forgotten_a_week_after_its_end(lab: Any) -> None:
    done, running = lab.submit("true"), lab.submit("exec sleep 600")
    lab.ended(done)
    lab.reaches(running, "RUNNING")
    lab.server.control.advance(6.9 * DAY)
    assert lab.job(done)["status"] == "SUCCEEDED"
    lab.server.control.advance(0.2 * DAY)
    assert [job["jobId"] for job in lab.batch.describe_jobs(jobs=[done, running])["jobs"]] == [running]


def test_deleting_a_queue_ends_its_jobs(lab: Any) -> None:
    job_id = lab.submit("exec sleep 600")
    lab.reaches(job_id, "RUNNING")
    lab.batch.update_job_queue(jobQueue="queue", state="DISABLED")
    described = lab.batch.describe_job_queues
    lab.wait_until(lambda: described(jobQueues=["queue"])["jobQueues"][0]["status"] == "VALID")
    assert lab.job(job_id)["status"] == "RUNNING"
    lab.batch.delete_job_queue(jobQueue="queue")
    assert lab.ended(job_id)["status"] == "FAILED"
    lab.wait_until(lambda: not described(jobQueues=["queue"])["jobQueues"])
