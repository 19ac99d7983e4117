"""Bucket and repository from the first update to the last, with files and images in them."""

import json
from collections.abc import Callable
from typing import Any

BOTH = {"artifactsBucket": True, "imageRepository": True}


def test_a_bucket_outlives_its_stack_unless_it_was_asked_to_go_and_a_repository_does_not(
    make_stack: Callable[..., Any],
) -> None:
    project = make_stack(**BOTH)
    account = project.account
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

    project.up()
    second = project.pulumi("stack", "output", "artifacts_bucket", capture=True).stdout.strip()
    assert second != kept
    fill(s3, second)
    project.configure(artifactsForceDestroy=True)
    project.up()
    (repository,) = ecr.describe_repositories()["repositories"]
    manifest = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "layers": []}
    ecr.put_image(repositoryName=repository["repositoryName"], imageManifest=json.dumps(manifest), imageTag="latest")
    project.destroy()
    assert account.inventory() - before == {f"bucket {kept}"}
    assert ecr.describe_repositories()["repositories"] == []
    s3.delete_object(Bucket=kept, Key="model.pt")
    s3.delete_bucket(Bucket=kept)  # the account is shared


def fill(s3: Any, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="model.pt", Body=b"weights")
