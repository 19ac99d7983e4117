"""What only the real engine shows of the plugin: secrets in the state, errors on the screen, what is half made."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from emulator.home import CHECKOUT, Home
from emulator.project import Project

PROJECT = "name: plugin-try\nruntime: {name: python, options: {virtualenv: .venv}}\n"
STACK = "config: {aws:region: us-east-1}\n"


@pytest.fixture(scope="module")
def tried(make_account: Callable[[Path], Home], tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project whose program each test writes, with nothing deployed."""
    folder = tmp_path_factory.mktemp("tried")
    project = Project(folder, make_account(folder))
    (folder / "Pulumi.yaml").write_text(PROJECT)
    (folder / "Pulumi.dev.yaml").write_text(STACK)
    (folder / ".venv").symlink_to(CHECKOUT / ".venv")
    project.init()
    return project


def deploy(project: Project, program: str) -> str:
    """Run `up` with a program and return what it prints."""
    (project.folder / "__main__.py").write_text(program)
    ran = project.pulumi("up", "--yes", "--skip-preview", capture=True, check=False)
    return ran.stdout + ran.stderr


def state(project: Project) -> dict[str, Any]:
    """Return the resources of the state by name."""
    resources = json.loads(project.pulumi("stack", "export", capture=True).stdout)["deployment"].get("resources", [])
    return {resource["urn"].rpartition("::")[2]: resource for resource in resources}


def test_a_secret_input_is_encrypted_in_the_state_and_plain_in_the_account(
    tried: Project, account_of: Callable[[Home], Any]
) -> None:
    deploy(
        tried,
        """
import pulumi
from pulumi_aws import secretsmanager
secretsmanager.Secret("keys", recovery_window_in_days=0, description=pulumi.Output.secret("quiet please"))
""",
    )
    assert "quiet please" not in json.dumps(state(tried))
    secret = state(tried)["keys"]
    assert "ciphertext" in secret["outputs"]["description"]
    found = account_of(tried.home).client("secretsmanager").describe_secret(SecretId=secret["id"])
    assert found["Description"] == "quiet please"
    tried.pulumi("preview", "--refresh", "--expect-no-changes", capture=True)
    tried.pulumi("destroy", "--yes", "--skip-preview", capture=True)


def test_an_error_is_one_sentence_without_a_traceback(tried: Project) -> None:
    printed = deploy(
        tried,
        """
from pulumi_aws import iam
iam.RolePolicyAttachment("lost", role="nobody", policy_arn="arn:aws:iam::aws:policy/ReadOnlyAccess")
""",
    )
    assert "AttachRolePolicy: NoSuchEntity: " in printed
    assert "Traceback" not in printed
    refused = deploy(
        tried,
        """
from pulumi_aws import cloudwatch
cloudwatch.LogGroup("jobs", log_group_class="INFREQUENT_ACCESS")
""",
    )
    assert "the stand-in AWS plugin does not serve the property logGroupClass" in refused
    assert "Traceback" not in refused
    assert not (tried.home.folder / "plugin.log").read_text()


HALF_MADE = """
import json
from pulumi_aws import batch, ec2, iam
allow = {"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}
role = iam.Role("host", assume_role_policy=json.dumps({"Version": "2012-10-17", "Statement": [allow]}))
profile = iam.InstanceProfile("host", role=role.name)
batch.ComputeEnvironment("c5a", type="MANAGED", compute_resources=batch.ComputeEnvironmentComputeResourcesArgs(
    type="EC2", allocation_strategy="BEST_FIT_PROGRESSIVE", instance_role=PROFILE, instance_types=["c5a.large"],
    max_vcpus=4, subnets=ec2.get_subnets().ids[:1]))
"""


def test_what_is_half_made_is_in_the_state_and_the_next_run_mends_it(
    tried: Project, account_of: Callable[[Home], Any]
) -> None:
    """An environment that turns out INVALID exists all the same; forgotten, it would never be deleted."""
    account = account_of(tried.home)
    before = account.inventory()
    printed = deploy(tried, HALF_MADE.replace("PROFILE", '"nothing"'))
    assert "is not valid: CLIENT_ERROR - Invalid IamInstanceProfile: nothing" in printed
    name = state(tried)["c5a"]["id"]
    assert account.environments()[name]["status"] == "INVALID"
    deploy(tried, HALF_MADE.replace("PROFILE", "profile.arn"))
    assert account.environments()[name]["status"] == "VALID"
    assert account.environments()[name]["computeResources"]["instanceRole"].endswith(state(tried)["host"]["id"])
    tried.pulumi("preview", "--refresh", "--expect-no-changes", capture=True)
    tried.pulumi("destroy", "--yes", "--skip-preview", capture=True)
    assert account.inventory() == before
