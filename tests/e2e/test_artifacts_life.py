"""Bucket and repository from the first update to the last, with files and images in them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from emulator.home import Home
from emulator.project import Project

BOTH = {"artifactsBucket": True, "imageRepository": True}


def configure(project: Project, **values: Any) -> None:
    """Set configuration of the stack, as a person edits its file."""
    stack_file = project.folder / "Pulumi.emulator.yaml"
    settings = yaml.safe_load(stack_file.read_text())
    settings["config"] |= {f"rl-batch:{key}": value for key, value in values.items()}
    stack_file.write_text(yaml.safe_dump(settings))


@pytest.fixture
def project(make_account: Callable[[Path], Home], tmp_path: Path) -> Project:
    made = Project.copy(tmp_path / "project", make_account(tmp_path))
    made.init()
    configure(made, instanceTypes=["c5a.large"], **BOTH)
    return made


def test_a_bucket_outlives_its_stack_unless_it_was_asked_to_go_and_a_repository_does_not(
    project: Project, account_of: Callable[[Home], Any]
) -> None:
    account = account_of(project.home)
    s3, ecr = account.client("s3"), account.client("ecr")
    before = account.inventory()
    said = project.pulumi("up", "--yes", "--skip-preview", "--stack", "emulator", capture=True).stdout
    kept = project.pulumi("stack", "output", "artifacts_bucket", capture=True).stdout.strip()
    assert f"The bucket {kept} stays when the stack is destroyed." in said
    project.pulumi("preview", "--refresh", "--expect-no-changes", capture=True)
    fill(s3, kept)

    shown = project.pulumi("destroy", "--yes", "--skip-preview", "--diff", "--stack", "emulator", capture=True).stdout
    assert f"[id={kept}]" in shown
    assert account.inventory() - before == {f"bucket {kept}"}
    assert ecr.describe_repositories()["repositories"] == []
    assert s3.get_object(Bucket=kept, Key="model.pt")["Body"].read() == b"weights"
    assert all(s3.get_public_access_block(Bucket=kept)["PublicAccessBlockConfiguration"].values())
    assert "aws:SecureTransport" in s3.get_bucket_policy(Bucket=kept)["Policy"]

    configure(project, artifactsForceDestroy=True)
    project.up()
    second = project.pulumi("stack", "output", "artifacts_bucket", capture=True).stdout.strip()
    assert second != kept
    fill(s3, second)
    (repository,) = ecr.describe_repositories()["repositories"]
    manifest = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "layers": []}
    ecr.put_image(repositoryName=repository["repositoryName"], imageManifest=json.dumps(manifest), imageTag="latest")
    project.destroy()
    assert account.inventory() - before == {f"bucket {kept}"}
    assert ecr.describe_repositories()["repositories"] == []


def fill(s3: Any, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="model.pt", Body=b"weights")
