"""Finding jobs: ListJobs, DescribeJobs and the head of a queue."""

from typing import Any


def names(answer: dict[str, Any]) -> list[str]:
    return [job["jobName"] for job in answer["jobSummaryList"]]


def test_without_a_state_only_running_jobs_are_listed(lab: Any) -> None:
    lab.ended(lab.submit("true", jobName="done"))
    lab.reaches(lab.submit("exec sleep 600", jobName="running"), "RUNNING")
    assert names(lab.batch.list_jobs(jobQueue="queue")) == ["running"]
    assert names(lab.batch.list_jobs(jobQueue="queue", jobStatus="SUCCEEDED")) == ["done"]
    arn = lab.batch.describe_job_queues()["jobQueues"][0]["jobQueueArn"]
    assert names(lab.batch.list_jobs(jobQueue=arn)) == ["running"]


def test_the_name_filter_ignores_case_and_state_and_takes_an_asterisk_at_the_end(lab: Any) -> None:
    array_id = lab.submit("true", jobName="Exp", size=2)
    lab.ended(array_id)
    for name in ("exp2", "other"):
        lab.ended(lab.submit("true", jobName=name))

    def found(*values: str) -> list[str]:
        return names(lab.batch.list_jobs(jobQueue="queue", filters=[{"name": "JOB_NAME", "values": list(values)}]))

    assert found("EXP") == ["Exp"]  # the parent, and none of its children
    assert found("exp*") == ["exp2", "Exp"]  # newest first
    assert found("*") == ["other", "exp2", "Exp"]
    assert found("xp", "*xp", "ex") == []


def test_pages_go_on_where_they_ended_although_jobs_are_added(lab: Any) -> None:
    filters = [{"name": "JOB_NAME", "values": ["page*"]}]
    for number in range(5):
        lab.submit("true", jobName=f"page{number}")
    first = lab.batch.list_jobs(jobQueue="queue", filters=filters, maxResults=2)
    assert names(first) == ["page4", "page3"]
    lab.submit("true", jobName="page5")
    second = lab.batch.list_jobs(jobQueue="queue", filters=filters, maxResults=2, nextToken=first["nextToken"])
    third = lab.batch.list_jobs(jobQueue="queue", filters=filters, maxResults=2, nextToken=second["nextToken"])
    assert names(second) + names(third) == ["page2", "page1", "page0"]
    assert "nextToken" not in third


def test_a_page_holds_a_hundred_when_filtered_and_a_thousand_else(lab: Any) -> None:
    filters = [{"name": "JOB_NAME", "values": ["*"]}]
    lab.batch.update_compute_environment(computeEnvironment="queue-environment", state="DISABLED")
    for _ in range(102):
        lab.submit("true")
    page = lab.batch.list_jobs(jobQueue="queue", filters=filters)
    assert (len(page["jobSummaryList"]), "nextToken" in page) == (100, True)
    assert len(lab.batch.list_jobs(jobQueue="queue", filters=filters, maxResults=1000)["jobSummaryList"]) == 100
    runnable = lab.wait_until(
        lambda: (
            page
            if len((page := lab.batch.list_jobs(jobQueue="queue", jobStatus="RUNNABLE"))["jobSummaryList"]) == 102
            else None
        )
    )
    assert "nextToken" not in runnable


def test_a_list_says_of_cancelled_and_terminated_jobs_that_they_are(lab: Any) -> None:
    waiting = {"containerOverrides": {"resourceRequirements": [{"type": "MEMORY", "value": "90000"}]}}
    failed, cancelled, terminated = lab.submit("false"), lab.submit("true", **waiting), lab.submit("true", **waiting)
    lab.ended(failed)
    lab.batch.cancel_job(jobId=cancelled, reason="not needed")
    lab.batch.terminate_job(jobId=terminated, reason="not needed")
    listed = lab.batch.list_jobs(jobQueue="queue", jobStatus="FAILED")["jobSummaryList"]
    said = {job["jobId"]: (job.get("isCancelled"), job.get("isTerminated")) for job in listed}
    assert said == {failed: (None, None), cancelled: (True, None), terminated: (None, True)}


def test_unknown_ids_are_left_out_of_a_description(lab: Any) -> None:
    job_id = lab.submit("true", size=2)
    asked = [job_id, "no-such-job", f"{job_id}:1", f"{job_id}:2", f"{job_id}:x", f"{job_id}:01", job_id]
    assert [job["jobId"] for job in lab.batch.describe_jobs(jobs=asked)["jobs"]] == [job_id, f"{job_id}:1"]


def test_a_new_job_can_be_missing_from_lists_for_a_while(lab: Any) -> None:
    """A fault that the account can be given: AWS's lists lag behind SubmitJob."""
    lab.server.batch.jobs.listing_delay_seconds = 30
    job_id = lab.submit("true", jobName="late")
    lab.ended(job_id)
    assert names(lab.batch.list_jobs(jobQueue="queue", jobStatus="SUCCEEDED")) == []
    lab.server.control.advance(31)
    assert names(lab.batch.list_jobs(jobQueue="queue", jobStatus="SUCCEEDED")) == ["late"]


def test_a_snapshot_shows_the_head_of_the_queue(lab: Any) -> None:
    lab.batch.update_compute_environment(computeEnvironment="queue-environment", state="DISABLED")
    first = lab.submit("true")
    array_id = lab.submit("true", size=200)
    lab.reaches(f"{array_id}:199", "RUNNABLE")
    front = lab.batch.get_job_queue_snapshot(jobQueue="queue")["frontOfQueue"]["jobs"]
    ids = [job["jobArn"].rpartition("/")[2] for job in front]
    assert ids == [first, *(f"{array_id}:{index}" for index in range(99))]
