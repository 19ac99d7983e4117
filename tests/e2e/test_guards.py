"""Updates that would end runs, on the real engine with runs that really run."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from emulator.home import Home
from emulator.project import Project

if TYPE_CHECKING:
    import subprocess

QUEUE = "c5a-large"
OVERRIDE = "`pulumi config set allowInterruption true`"


def configure(project: Project, **values: Any) -> None:
    """Give the stack exactly this configuration, besides its one instance type."""
    stack_file = project.folder / "Pulumi.emulator.yaml"
    kept = {key: value for key, value in yaml.safe_load(stack_file.read_text()).items() if key != "config"}
    wanted = {"rl-batch:instanceTypes": ["c5a.large"], **{f"rl-batch:{key}": each for key, each in values.items()}}
    stack_file.write_text(yaml.safe_dump({**kept, "config": {"aws:region": "us-east-1", **wanted}}))


@pytest.fixture(scope="module")
def deployed(make_account: Callable[[Path], Home], tmp_path_factory: pytest.TempPathFactory) -> Project:
    folder = tmp_path_factory.mktemp("guards")
    project = Project.copy(folder / "project", make_account(folder))
    project.init()
    configure(project)
    project.up()
    return project


@pytest.fixture
def running(deployed: Project, account_of: Callable[[Home], Any]) -> Any:
    """An array of two runs that are running on the queue until the test ends; return the account."""
    account = account_of(deployed.home)
    batch = account.client("batch")
    needs = [{"type": "VCPU", "value": "1"}, {"type": "MEMORY", "value": "500"}]
    container = {"image": "none", "command": ["sleep", "600"], "resourceRequirements": needs}
    batch.register_job_definition(jobDefinitionName="sleep", type="container", containerProperties=container)
    job = batch.submit_job(jobName="sleep", jobQueue=QUEUE, jobDefinition="sleep", arrayProperties={"size": 2})["jobId"]

    def summary() -> dict[str, int]:
        found: dict[str, int] = batch.describe_jobs(jobs=[job])["jobs"][0]["arrayProperties"]["statusSummary"]
        return found

    wait(lambda: summary().get("RUNNING") == 2)
    yield account
    batch.terminate_job(jobId=job, reason="the test is over")
    wait(lambda: summary().get("FAILED") == 2)


def wait(probe: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not probe():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def up(project: Project) -> "subprocess.CompletedProcess[str]":
    return project.pulumi("up", "--yes", "--skip-preview", "--stack", "emulator", capture=True, check=False)


def refusals(done: "subprocess.CompletedProcess[str]") -> set[str]:
    """Return what a refused update says, each once."""
    assert done.returncode != 0
    lines = (line.strip().removeprefix("error: ") for line in done.stdout.splitlines() if OVERRIDE in line)
    return {line for line in lines if not line.startswith(("~", "+", "pulumi:", "aws:"))}


def state_of(account: Any) -> Any:
    """Return what an update of environments, queues and template could change."""
    templates = account.client("ec2").describe_launch_templates()["LaunchTemplates"]
    versions = [template["LatestVersionNumber"] for template in templates]
    return account.environments(), account.queues(), versions


REMEDY = f"wait, end what is there with `submitter cancel`, or let the update end it: {OVERRIDE}."


@pytest.mark.parametrize(
    ("change", "hook", "said"),
    [
        ({"rootVolumeGib": 80}, "runs-on-hosts", "running on c5a-large, and this update would replace the hosts"),
        (
            {"onDemandAllocationStrategy": "BEST_FIT"},
            "runs-on-c5a-large",
            "running on c5a-large, and this update would replace the environment",
        ),
        ({"fairShare": True}, "", "unfinished on c5a-large, and this update would delete the queue"),
        ({"queuePrefix": "alice"}, "", "unfinished on c5a-large, and this update would delete the queue"),
    ],
)
def test_an_update_that_would_end_runs_is_refused_and_changes_nothing(
    deployed: Project, running: Any, change: dict[str, Any], hook: str, said: str
) -> None:
    before = state_of(running)
    configure(deployed, **change)
    prefix = f'before hook "{hook}" failed: ' if hook else ""
    assert refusals(up(deployed)) == {f"{prefix}2 runs are {said}; {REMEDY}"}
    assert state_of(running) == before


def test_an_environment_is_not_replaced_under_running_runs(deployed: Project, running: Any) -> None:
    configure(deployed, serviceRole="dedicated")
    before = running.environment_of(QUEUE)
    (said,) = refusals(up(deployed))
    assert "2 runs are running on c5a-large, and this update would replace the environment" in said
    assert running.environment_of(QUEUE) == before
    configure(deployed)
    assert up(deployed).returncode == 0, "taking the change back is always possible"


def test_a_preview_says_that_the_removal_of_a_queue_will_be_refused(deployed: Project, running: Any) -> None:  # noqa: ARG001  # the runs
    configure(deployed, queuePrefix="alice")
    shown = deployed.pulumi("preview", "--stack", "emulator", capture=True)
    assert "`pulumi up` will refuse this: 2 runs are unfinished on c5a-large" in shown.stdout


def test_a_change_that_leaves_the_hosts_alone_is_made_while_runs_run(deployed: Project, running: Any) -> None:
    configure(deployed, maxVcpus=64, tags={"team": "rl"}, logRetentionDays=30)
    assert up(deployed).returncode == 0
    assert running.environment_of(QUEUE)["computeResources"]["maxvCpus"] == 64


def test_the_override_lets_the_update_end_what_is_there(deployed: Project, running: Any) -> None:
    configure(deployed, rootVolumeGib=80, allowInterruption=True)
    before = running.environment_of(QUEUE)["computeResources"]["launchTemplate"]["version"]
    assert up(deployed).returncode == 0
    assert running.environment_of(QUEUE)["computeResources"]["launchTemplate"]["version"] != before


def test_a_name_that_is_taken_is_answered_with_the_prefix(deployed: Project) -> None:
    configure(deployed)
    assert up(deployed).returncode == 0
    deployed.pulumi("stack", "init", "second", capture=True)
    (deployed.folder / "Pulumi.second.yaml").write_text((deployed.folder / "Pulumi.emulator.yaml").read_text())
    done = deployed.pulumi("up", "--yes", "--skip-preview", "--stack", "second", capture=True, check=False)
    assert done.returncode != 0
    assert "set queuePrefix NAME" in done.stdout
