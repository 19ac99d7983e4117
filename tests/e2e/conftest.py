"""Accounts as detached processes, and the project deployed to them by the real `pulumi`."""

import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import boto3
import pytest

from emulator.home import Home
from emulator.project import Project

ROOT = Path(__file__).parents[2]

MakeAccount = Callable[[Path], Home]


@pytest.fixture(scope="session")
def make_account() -> Iterator[MakeAccount]:
    """Start an account in a folder of its own; all of them end with the session."""
    homes: list[Home] = []

    def make(folder: Path) -> Home:
        home = Home(folder / "home")
        emulator("start", home)
        homes.append(home)
        return home

    yield make
    for home in homes:
        emulator("stop", home)


def emulator(command: str, home: Home) -> None:
    subprocess.run([sys.executable, "-m", "emulator", command, "--home", str(home.folder)], cwd=ROOT, check=True)


@pytest.fixture(scope="session")
def project(make_account: MakeAccount, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The stack of Pulumi.dev.yaml, deployed to an account: for tests that leave the stack as it is."""
    folder = tmp_path_factory.mktemp("deployed")
    deployed = Project.copy(folder / "project", make_account(folder))
    deployed.init()
    deployed.up()
    return deployed


@pytest.fixture(scope="session")
def run_in() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a command in a project's folder, led to its account: `run_in(project, "submitter", "queues")`."""

    def run(
        project: Project, *command: str, stdin: str | None = None, extra: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=project.folder,
            env={**project.home.process_environment(), **(extra or {})},
            input=stdin or "",
            capture_output=True,
            text=True,
            check=False,
        )

    return run


class Account:
    """What boto3 sees of an account."""

    def __init__(self, home: Home) -> None:
        self._url = home.running().url
        self._session = boto3.Session(
            aws_access_key_id="emulator", aws_secret_access_key="emulator", region_name="us-east-1"
        )

    def client(self, service: str) -> Any:
        return self._session.client(service, endpoint_url=self._url)  # type: ignore[call-overload] # not a literal

    def environments(self) -> dict[str, dict[str, Any]]:
        """Compute environments by name."""
        pages = self.client("batch").get_paginator("describe_compute_environments").paginate()
        return {found["computeEnvironmentName"]: found for page in pages for found in page["computeEnvironments"]}

    def queues(self) -> dict[str, dict[str, Any]]:
        """Job queues by name."""
        pages = self.client("batch").get_paginator("describe_job_queues").paginate()
        return {found["jobQueueName"]: found for page in pages for found in page["jobQueues"]}

    def environment_of(self, queue: str) -> dict[str, Any]:
        """The one compute environment behind a queue."""
        (order,) = self.queues()[queue]["computeEnvironmentOrder"]
        return self.environments()[order["computeEnvironment"].rpartition("/")[2]]

    def inventory(self) -> set[str]:
        """Everything that a stack could leave behind, by kind and name; what AWS makes for itself is left out."""
        iam, ec2 = self.client("iam"), self.client("ec2")
        found = {
            "role": [role["RoleName"] for role in iam.list_roles()["Roles"] if not _awss_own(role["Path"])],
            "policy": [policy["PolicyName"] for policy in iam.list_policies(Scope="Local")["Policies"]],
            "instance profile": [
                one["InstanceProfileName"] for one in iam.list_instance_profiles()["InstanceProfiles"]
            ],
            "security group": [one["GroupId"] for one in ec2.describe_security_groups()["SecurityGroups"]],
            "launch template": [one["LaunchTemplateId"] for one in ec2.describe_launch_templates()["LaunchTemplates"]],
            "environment": self.environments(),
            "queue": self.queues(),
            "scheduling policy": [
                one["arn"] for one in self.client("batch").list_scheduling_policies()["schedulingPolicies"]
            ],
            "log group": [one["logGroupName"] for one in self.client("logs").describe_log_groups()["logGroups"]],
            "table": self.client("dynamodb").list_tables()["TableNames"],
            "secret": [one["Name"] for one in self.client("secretsmanager").list_secrets()["SecretList"]],
            "bucket": [one["Name"] for one in self.client("s3").list_buckets()["Buckets"]],
        }
        return {f"{kind} {name}" for kind, names in found.items() for name in names}


def _awss_own(path: str) -> bool:
    return path.startswith("/aws-service-role/")


@pytest.fixture(scope="session")
def account_of() -> Callable[[Home], Account]:
    """See an account by boto3: `account_of(home).queues()`."""
    return Account
