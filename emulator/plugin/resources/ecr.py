"""Image repositories of ECR."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar

from typing_extensions import override

from emulator.plugin.aws import Aws, tag_list, tag_map
from emulator.plugin.resource import TAGS, ResourceType
from emulator.plugin.schema import Fields, Input, Values


class Repository(ResourceType):
    """A repository; its id is its name."""

    type_name = "aws:ecr/repository:Repository"
    source = "internal/service/ecr/repository.go at af55dfb90500e80afb9d9ba64a76024e500c948a"
    inputs: ClassVar[Fields] = {
        # Later than that source: until then a repository with images was deleted without being asked.
        "forceDelete": Input(remembered=True),
        "imageScanningConfiguration": Input(computed=True, fields={"scanOnPush": Input(required=True)}),
        "imageTagMutability": Input(default="MUTABLE"),
        "name": Input(force_new=True, computed=True),
        "tags": TAGS,
    }
    outputs = ("arn", "region", "registryId", "repositoryUrl", "tagsAll")
    name_length = 256
    gone = frozenset({"RepositoryNotFoundException"})

    @override
    def create(self, aws: Aws, inputs: Values) -> str:
        scanning = inputs.get("imageScanningConfiguration")
        aws.client("ecr").create_repository(
            repositoryName=inputs["name"],
            imageTagMutability=inputs["imageTagMutability"],
            tags=tag_list(inputs.get("tags")),
            **({"imageScanningConfiguration": scanning} if scanning else {}),
        )
        return str(inputs["name"])

    @override
    def read(self, aws: Aws, resource_id: str) -> Values | None:
        ecr = aws.client("ecr")
        (found,) = ecr.describe_repositories(repositoryNames=[resource_id])["repositories"]
        return {
            "arn": found["repositoryArn"],
            "imageScanningConfiguration": found["imageScanningConfiguration"],
            "imageTagMutability": found["imageTagMutability"],
            "name": found["repositoryName"],
            "registryId": found["registryId"],
            "repositoryUrl": found["repositoryUri"],
            "tags": tag_map(ecr.list_tags_for_resource(resourceArn=found["repositoryArn"])["tags"]),
        }

    @override
    def update(self, aws: Aws, resource_id: str, old: Values, new: Values, changed: Collection[str]) -> None:
        ecr = aws.client("ecr")
        if "imageTagMutability" in changed:
            ecr.put_image_tag_mutability(repositoryName=resource_id, imageTagMutability=new["imageTagMutability"])
        if "imageScanningConfiguration" in changed:
            ecr.put_image_scanning_configuration(
                repositoryName=resource_id, imageScanningConfiguration=new["imageScanningConfiguration"]
            )

    @override
    def retag(self, aws: Aws, resource_id: str, state: Values, add: Mapping[str, str], remove: Sequence[str]) -> None:
        if remove:
            aws.client("ecr").untag_resource(resourceArn=state["arn"], tagKeys=remove)
        if add:
            aws.client("ecr").tag_resource(resourceArn=state["arn"], tags=tag_list(add))

    @override
    def delete(self, aws: Aws, resource_id: str, state: Values) -> None:
        aws.client("ecr").delete_repository(repositoryName=resource_id, force=bool(state.get("forceDelete")))


class LifecyclePolicy(ResourceType):
    """Which images of a repository expire; its id is the repository's name."""

    type_name = "aws:ecr/lifecyclePolicy:LifecyclePolicy"
    source = "internal/service/ecr/lifecycle_policy.go at cde80b25f7529d8864ff30c0d426592d1ded5a4f"
    inputs: ClassVar[Fields] = {
        "policy": Input(required=True, force_new=True, document=True),
        "repository": Input(required=True, force_new=True),
    }
    outputs = ("region", "registryId")
    name = None
    gone = frozenset({"LifecyclePolicyNotFoundException", "RepositoryNotFoundException"})

    @override
    def create(self, aws: Aws, inputs: Values) -> str:
        aws.client("ecr").put_lifecycle_policy(
            repositoryName=inputs["repository"], lifecyclePolicyText=inputs["policy"]
        )
        return str(inputs["repository"])

    @override
    def read(self, aws: Aws, resource_id: str) -> Values | None:
        found: dict[str, Any] = aws.client("ecr").get_lifecycle_policy(repositoryName=resource_id)
        return {
            "policy": found["lifecyclePolicyText"],
            "registryId": found["registryId"],
            "repository": found["repositoryName"],
        }

    @override
    def delete(self, aws: Aws, resource_id: str, state: Values) -> None:
        aws.client("ecr").delete_lifecycle_policy(repositoryName=resource_id)
