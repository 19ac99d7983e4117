"""What the jobs leave and what they run: a bucket for artifacts and a repository for images, each only if asked for.

pulumi_aws loads the classes of a service when one is first named, so annotations here are text: a stack without bucket
and repository does not wait for them.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import pulumi
from pulumi_aws import ecr, s3

from infra import policies
from infra.config import StackConfig
from infra.facts import Account
from infra.naming import storage_name

_ABANDONED_UPLOAD_DAYS: Final = 7
_UNTAGGED_IMAGE_DAYS: Final = 90
"""A sweep refers to its image by digest, and its image loses the tag to the next one; this is how long it is there."""


@dataclass(frozen=True, kw_only=True)
class ArtifactsArgs:
    """What bucket and repository depend on.

    Attributes:
        config: The stack's configuration.
        account: Where the stack lives.
        tags: Tags of both.
    """

    config: StackConfig
    account: Account
    tags: Mapping[str, str]


class Artifacts(pulumi.ComponentResource):
    """A private bucket and an image repository; both cost by what is in them, and nothing when empty.

    The bucket outlives the stack unless the configuration says otherwise; the repository goes with it.

    Attributes:
        bucket_name: The bucket's name, or None.
        bucket_arn: Its ARN, or None.
        repository_arn: The repository's ARN, or None.
        repository_url: What images are tagged and pushed as, or None.
    """

    bucket_name: pulumi.Output[str] | None = None
    bucket_arn: pulumi.Output[str] | None = None
    repository_arn: pulumi.Output[str] | None = None
    repository_url: pulumi.Output[str] | None = None

    def __init__(self, name: str, args: ArtifactsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("rl-batch:infra:Artifacts", name, None, opts)
        self._args = args
        if args.config.artifacts_bucket:
            bucket = self._bucket(storage_name(f"{name}-artifacts"))
            self.bucket_name, self.bucket_arn = bucket.bucket, bucket.arn
        if args.config.image_repository:
            repository = self._repository(storage_name(f"{name}-images"))
            self.repository_arn, self.repository_url = repository.arn, repository.repository_url
        self.register_outputs({})

    def _bucket(self, name: str) -> "s3.Bucket":
        force = self._args.config.artifacts_force_destroy
        # What protects the bucket stays with it.
        opts = pulumi.ResourceOptions(parent=self, retain_on_delete=not force)
        bucket = s3.Bucket(name, force_destroy=force, tags=self._args.tags, opts=opts)
        if not force and not pulumi.runtime.is_dry_run():
            # Said here because the program does not run when the stack is destroyed.
            bucket.bucket.apply(lambda name: pulumi.log.info(f"The bucket {name} stays when the stack is destroyed."))
        s3.BucketPublicAccessBlock(
            name,
            bucket=bucket.bucket,
            block_public_acls=True,
            block_public_policy=True,
            ignore_public_acls=True,
            restrict_public_buckets=True,
            opts=opts,
        )
        s3_keys = s3.BucketServerSideEncryptionConfigurationRuleApplyServerSideEncryptionByDefaultArgs(
            sse_algorithm="AES256"
        )
        s3.BucketServerSideEncryptionConfiguration(
            name,
            bucket=bucket.bucket,
            rules=[s3.BucketServerSideEncryptionConfigurationRuleArgs(apply_server_side_encryption_by_default=s3_keys)],
            opts=opts,
        )
        s3.BucketLifecycleConfiguration(name, bucket=bucket.bucket, rules=_lifecycle(), opts=opts)
        s3.BucketPolicy(
            name,
            bucket=bucket.bucket,
            policy=bucket.arn.apply(lambda arn: policies.to_json(policies.encrypted_transport_policy(arn))),
            opts=opts,
        )
        return bucket

    def _repository(self, name: str) -> "ecr.Repository":
        opts = pulumi.ResourceOptions(parent=self)
        repository = ecr.Repository(
            name,
            # Images are made from what is in version control, and a destroy that stops at them would leave a stack.
            force_delete=True,
            image_scanning_configuration=ecr.RepositoryImageScanningConfigurationArgs(scan_on_push=True),
            tags=self._args.tags,
            opts=opts,
        )
        ecr.LifecyclePolicy(name, repository=repository.name, policy=json.dumps(_expire_untagged()), opts=opts)
        return repository


def _lifecycle() -> "list[s3.BucketLifecycleConfigurationRuleArgs]":
    """Return rules that delete no file.

    Files that nobody reads for 30 and 90 days become 40 and 68 percent cheaper, and cost no more to read again
    (Amazon S3 User Guide, "How S3 Intelligent-Tiering works").
    """
    return [
        s3.BucketLifecycleConfigurationRuleArgs(
            id="unread-files-become-cheaper",
            status="Enabled",
            filter=s3.BucketLifecycleConfigurationRuleFilterArgs(prefix=""),
            transitions=[
                s3.BucketLifecycleConfigurationRuleTransitionArgs(days=0, storage_class="INTELLIGENT_TIERING")
            ],
        ),
        s3.BucketLifecycleConfigurationRuleArgs(
            id="abandoned-uploads-go",
            status="Enabled",
            filter=s3.BucketLifecycleConfigurationRuleFilterArgs(prefix=""),
            abort_incomplete_multipart_upload=s3.BucketLifecycleConfigurationRuleAbortIncompleteMultipartUploadArgs(
                days_after_initiation=_ABANDONED_UPLOAD_DAYS
            ),
        ),
    ]


def _expire_untagged() -> dict[str, object]:
    """Return a lifecycle policy for images that lost their tag.

    What a multi-architecture image consists of is untagged too, and stays as long as that image (Amazon ECR User
    Guide, "Lifecycle policy evaluation rules").
    """
    selection = {
        "tagStatus": "untagged",
        "countType": "sinceImagePushed",
        "countUnit": "days",
        "countNumber": _UNTAGGED_IMAGE_DAYS,
    }
    rule = {
        "rulePriority": 1,
        "description": f"Untagged for {_UNTAGGED_IMAGE_DAYS} days",
        "selection": selection,
        "action": {"type": "expire"},
    }
    return {"rules": [rule]}
