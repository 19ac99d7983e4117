"""Accounts as detached processes, and the project deployed to them by the real `pulumi`."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import boto3
import pytest
import yaml

from emulator.calls import Call
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
    """What boto3 sees of an account in a region."""

    def __init__(self, home: Home, region: str = "us-east-1") -> None:
        self._url = home.running().url
        self._session = boto3.Session(
            aws_access_key_id="emulator", aws_secret_access_key="emulator", region_name=region
        )

    def control(self, method: str, path: str, **sent: Any) -> dict[str, Any]:
        """Ask the account's own endpoint: `control("POST", "clock", advance=60)`."""
        connection = HTTPConnection(urlsplit(self._url).netloc)
        connection.request(method, f"/_emulator/{path}", json.dumps(sent), {"Content-Type": "application/json"})
        reply = connection.getresponse()
        read: dict[str, Any] = json.load(reply)
        connection.close()
        assert reply.status == 200, read
        return read

    def calls(self) -> list[Call]:
        """Every request that the account remembers, oldest first."""
        return [Call(**call) for call in self.control("GET", "requests")["requests"]]

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
            "repository": [one["repositoryName"] for one in self.client("ecr").describe_repositories()["repositories"]],
        }
        return {f"{kind} {name}" for kind, names in found.items() for name in names}


def _awss_own(path: str) -> bool:
    return path.startswith("/aws-service-role/")


@pytest.fixture(scope="session")
def account_of() -> Callable[..., Account]:
    """See an account by boto3: `account_of(home).queues()`, `account_of(home, "us-west-2")`."""
    return Account


class Stack(Project):
    """The project with a state of its own, so that an account can have several, and what its updates do."""

    def __init__(self, folder: Path, home: Home) -> None:
        super().__init__(folder, Home(home.folder))
        self.home.backend = folder.parent / "backend"
        self.home.backend.mkdir()
        self.account = Account(home)

    def configure(self, **values: Any) -> None:
        """Set configuration of the stack, as a person edits its file."""
        stack_file = self.folder / "Pulumi.emulator.yaml"
        settings = yaml.safe_load(stack_file.read_text())
        settings["config"] |= {f"rl-batch:{key}": value for key, value in values.items()}
        stack_file.write_text(yaml.safe_dump(settings))

    def update(self) -> list[tuple[str, str]]:
        """Run `pulumi up`, and return what it did to AWS's resources, in order: (`update`, `JobQueue`), ..."""
        done = self.pulumi("up", "--yes", "--skip-preview", "--json", capture=True)
        events = (json.loads(line).get("resOutputsEvent") for line in done.stdout.splitlines())
        steps = [event["metadata"] for event in events if event]
        return [
            (step["op"], step["type"].rpartition(":")[2])
            for step in steps
            if step["type"].startswith("aws:") and step["op"] != "same"
        ]

    def assert_nothing_to_do(self) -> None:
        """Check that the program, the state and the account agree."""
        self.pulumi("preview", "--refresh", "--expect-no-changes", capture=True)


@pytest.fixture(scope="session")
def shared_home(make_account: MakeAccount, tmp_path_factory: pytest.TempPathFactory) -> Home:
    """An account for tests that leave nothing in it."""
    return make_account(tmp_path_factory.mktemp("shared"))


@pytest.fixture
def make_stack(shared_home: Home, tmp_path: Path) -> Callable[..., Stack]:
    """Make a stack in the shared account, not deployed yet: `make_stack("a", maxVcpus=4)`; the test destroys it."""

    def make(name: str = "stack", **config: Any) -> Stack:
        (tmp_path / name).mkdir()
        stack = Stack.copy(tmp_path / name / "project", shared_home)
        stack.init()
        stack.configure(**{"instanceTypes": ["c5a.large"], **config})
        return stack

    return make
