"""Array jobs, and jobs that depend on others."""

import threading
from pathlib import Path
from typing import Any


def children(lab: Any, array_id: str, size: int) -> list[dict[str, Any]]:
    """Describe the children of an array by index."""
    found = lab.batch.describe_jobs(jobs=[f"{array_id}:{index}" for index in range(size)])["jobs"]
    return sorted(found, key=lambda job: int(job["arrayProperties"]["index"]))


def test_each_child_knows_its_index_and_the_parent_sums_them_up(lab: Any) -> None:
    array_id = lab.submit('echo "$AWS_BATCH_JOB_ID $AWS_BATCH_JOB_ARRAY_INDEX/$AWS_BATCH_JOB_ARRAY_SIZE"', size=3)
    parent = lab.ended(array_id)
    assert parent["status"] == "SUCCEEDED"
    assert parent["arrayProperties"]["size"] == 3
    assert parent["arrayProperties"]["statusSummary"] == {
        "SUBMITTED": 0,
        "PENDING": 0,
        "RUNNABLE": 0,
        "STARTING": 0,
        "RUNNING": 0,
        "SUCCEEDED": 3,
        "FAILED": 0,
    }
    assert parent["attempts"] == []
    assert "logStreamName" not in parent["container"]
    for index, child in enumerate(children(lab, array_id, 3)):
        assert child["arrayProperties"] == {"index": index}
        assert child["jobName"] == parent["jobName"]
        assert lab.log(child["container"]["logStreamName"]) == [f"{array_id}:{index} {index}/3"]


def test_one_end_can_be_that_of_thousands_in_a_row(lab: Any) -> None:
    """Children that wait for the one before them, and arrays that wait for it child by child; a week later all go."""
    first = lab.submit("exit 3", size=3000, dependsOn=[{"type": "SEQUENTIAL"}])
    second = lab.submit("true", size=3000, dependsOn=[{"type": "N_TO_N", "jobId": first}])
    assert lab.ended(first)["arrayProperties"]["statusSummary"]["FAILED"] == 3000
    assert lab.ended(second)["arrayProperties"]["statusSummary"]["FAILED"] == 3000
    assert lab.job(f"{first}:2999")["statusReason"] == "Dependent Job failed"
    lab.server.control.advance(8 * 24 * 3600)
    assert lab.batch.describe_jobs(jobs=[first, second])["jobs"] == []


def test_the_parent_is_pending_while_children_run_and_fails_when_one_failed(lab: Any, tmp_path: Path) -> None:
    go_on = tmp_path / "go-on"
    array_id = lab.submit(f"until [ -e {go_on} ]; do sleep 0.02; done; [ $AWS_BATCH_JOB_ARRAY_INDEX != 1 ]", size=3)
    lab.reaches(f"{array_id}:0", "RUNNING")
    lab.reaches(f"{array_id}:1", "RUNNING")
    parent = lab.job(array_id)
    assert parent["status"] == "PENDING"
    assert parent["arrayProperties"]["statusSummary"]["RUNNING"] == 2
    assert parent["arrayProperties"]["statusSummary"]["STARTING"] == 1
    assert "stoppedAt" not in parent
    go_on.touch()
    ended = lab.ended(array_id)
    assert (ended["status"], ended["statusReason"]) == ("FAILED", "Array Child Job failed")
    assert [child["status"] for child in children(lab, array_id, 3)] == ["SUCCEEDED", "FAILED", "SUCCEEDED"]


def test_a_child_is_retried_by_itself(lab: Any) -> None:
    array_id = lab.submit(
        "[ $AWS_BATCH_JOB_ARRAY_INDEX$AWS_BATCH_JOB_ATTEMPT != 11 ]", size=3, retryStrategy={"attempts": 2}
    )
    assert lab.ended(array_id)["status"] == "SUCCEEDED"
    assert [len(child["attempts"]) for child in children(lab, array_id, 3)] == [1, 2, 1]


def test_terminating_the_parent_ends_every_child(lab: Any) -> None:
    array_id = lab.submit("exec sleep 600", size=40, retryStrategy={"attempts": 3})
    lab.reaches(f"{array_id}:1", "RUNNING")
    lab.batch.terminate_job(jobId=array_id, reason="stop")
    parent = lab.ended(array_id)
    assert (parent["status"], parent["statusReason"]) == ("FAILED", "stop")
    assert parent["arrayProperties"]["statusSummary"]["FAILED"] == 40
    assert {child["statusReason"] for child in children(lab, array_id, 40)} == {"stop"}


def test_cancelling_the_parent_lets_running_children_end(lab: Any, tmp_path: Path) -> None:
    go_on = tmp_path / "go-on"
    array_id = lab.submit(f"until [ -e {go_on} ]; do sleep 0.02; done", size=40)
    lab.reaches(f"{array_id}:1", "RUNNING")
    lab.batch.cancel_job(jobId=array_id, reason="enough")
    assert lab.job(array_id)["status"] == "PENDING"
    go_on.touch()
    parent = lab.ended(array_id)
    assert (parent["status"], parent["statusReason"]) == ("FAILED", "enough")
    # 16 vCPUs: that many were on hosts when the others were cancelled.
    assert (
        parent["arrayProperties"]["statusSummary"] | {"SUCCEEDED": 16, "FAILED": 24}
        == (parent["arrayProperties"]["statusSummary"])
    )


def test_one_child_can_be_terminated(lab: Any, tmp_path: Path) -> None:
    go_on = tmp_path / "go-on"
    array_id = lab.submit(f"until [ -e {go_on} ]; do sleep 0.02; done", size=3)
    lab.reaches(f"{array_id}:0", "RUNNING")
    lab.batch.terminate_job(jobId=f"{array_id}:2", reason="not this one")
    assert lab.ended(f"{array_id}:2")["statusReason"] == "not this one"
    go_on.touch()
    lab.ended(array_id)
    assert [child["status"] for child in children(lab, array_id, 3)] == ["SUCCEEDED", "SUCCEEDED", "FAILED"]


def test_children_are_listed_by_status_in_pages(lab: Any) -> None:
    array_id = lab.submit("[ $AWS_BATCH_JOB_ARRAY_INDEX -ge 2 ]", size=5)
    lab.ended(array_id)
    listed = lab.batch.list_jobs
    assert listed(arrayJobId=array_id)["jobSummaryList"] == []
    failed = listed(arrayJobId=array_id, jobStatus="FAILED")["jobSummaryList"]
    assert [job["jobId"] for job in failed] == [f"{array_id}:0", f"{array_id}:1"]
    assert failed[0]["container"] == {"exitCode": 1}
    assert failed[0]["arrayProperties"]["index"] == 0
    indexes: list[int] = []
    page: dict[str, Any] = {}
    while page.get("nextToken") or not indexes:
        token = {"nextToken": page["nextToken"]} if page else {}
        page = listed(arrayJobId=array_id, jobStatus="SUCCEEDED", maxResults=2, **token)
        assert len(page["jobSummaryList"]) <= 2
        indexes += [job["arrayProperties"]["index"] for job in page["jobSummaryList"]]
    assert indexes == [2, 3, 4]


def test_a_job_waits_for_those_that_it_depends_on(lab: Any, tmp_path: Path) -> None:
    go_on = tmp_path / "go-on"
    first = lab.submit(f"until [ -e {go_on} ]; do sleep 0.02; done", size=2)
    second = lab.submit("true", dependsOn=[{"jobId": first}])
    after_array = lab.submit("true", size=2, dependsOn=[{"jobId": second}])
    lab.reaches(f"{first}:0", "RUNNING")
    assert lab.reaches(second, "PENDING")["dependsOn"] == [{"jobId": first}]
    assert lab.job(after_array)["arrayProperties"]["statusSummary"]["PENDING"] == 2
    go_on.touch()
    assert lab.ended(after_array)["status"] == "SUCCEEDED"
    assert lab.job(second)["startedAt"] >= lab.job(first)["stoppedAt"]


def test_a_failed_dependency_fails_what_depends_on_it(lab: Any) -> None:
    first = lab.submit("exit 1")
    second = lab.submit("true", dependsOn=[{"jobId": first}])
    third = lab.submit("true", size=2, dependsOn=[{"jobId": second}])
    for job_id in (second, third):
        job = lab.ended(job_id)
        assert (job["status"], job["statusReason"]) == ("FAILED", "Dependent Job failed")


def test_children_wait_for_their_counterparts_or_for_the_one_before(lab: Any) -> None:
    first = lab.submit("[ $AWS_BATCH_JOB_ARRAY_INDEX != 1 ]", size=3)
    by_child = lab.submit("true", size=3, dependsOn=[{"jobId": first, "type": "N_TO_N"}])
    in_order = lab.submit("[ $AWS_BATCH_JOB_ARRAY_INDEX != 1 ]", size=3, dependsOn=[{"type": "SEQUENTIAL"}])
    lab.ended(by_child)
    assert [child["status"] for child in children(lab, by_child, 3)] == ["SUCCEEDED", "FAILED", "SUCCEEDED"]
    lab.ended(in_order)
    zero, one, two = children(lab, in_order, 3)
    assert zero["stoppedAt"] <= one["startedAt"]
    assert (two["status"], two["statusReason"]) == ("FAILED", "Dependent Job failed")
    assert "startedAt" not in two


def resident_mib() -> float:
    """Memory of this process, which is the emulator's, in MiB."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


def test_an_array_of_ten_thousand_costs_no_thread_per_child_and_little_memory(lab: Any) -> None:
    """Children of one line, placed on a fleet of 1,000 hosts."""
    size, store = 10_000, lab.server.batch.scheduler.store
    lab.ended(lab.submit("echo warm"))
    environment = "queue-environment"
    lab.batch.update_compute_environment(computeEnvironment=environment, computeResources={"maxvCpus": 2000})
    threads, idle, most_threads, most_memory = threading.active_count(), resident_mib(), 0, 0.0
    command = {"command": ["printenv", "AWS_BATCH_JOB_ARRAY_INDEX"]}
    array_id = lab.submit(containerOverrides=command, size=size)

    def over() -> bool:
        nonlocal most_threads, most_memory
        most_threads = max(most_threads, threading.active_count())
        most_memory = max(most_memory, resident_mib())
        # Asked in process: thousands of requests would be most of the work.
        return lab.server.loop.call(store.get, array_id).status in {"SUCCEEDED", "FAILED"}

    lab.wait_until(over, seconds=240)
    assert lab.job(array_id)["arrayProperties"]["statusSummary"]["SUCCEEDED"] == size
    assert most_threads <= threads
    assert most_memory - idle < 100
    last = lab.job(f"{array_id}:{size - 1}")
    assert lab.log(last["container"]["logStreamName"]) == [str(size - 1)]
