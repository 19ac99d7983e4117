"""The resource types that are served; each module holds those of one AWS service."""

from typing import Final

from emulator.plugin.resource import ResourceType
from emulator.plugin.resources import batch, compute_environment, ecr, iam, launch_template, s3, security_group, storage

TYPES: Final[tuple[ResourceType, ...]] = (
    iam.Role(),
    iam.RolePolicyAttachment(),
    iam.RolePolicy(),
    iam.Policy(),
    iam.InstanceProfile(),
    security_group.SecurityGroup(),
    launch_template.LaunchTemplate(),
    compute_environment.ComputeEnvironment(),
    batch.JobQueue(),
    batch.SchedulingPolicy(),
    storage.LogGroup(),
    storage.Table(),
    storage.Secret(),
    s3.Bucket(),
    s3.BucketPublicAccessBlock(),
    s3.BucketServerSideEncryptionConfiguration(),
    s3.BucketLifecycleConfiguration(),
    s3.BucketPolicy(),
    ecr.Repository(),
    ecr.LifecyclePolicy(),
)
