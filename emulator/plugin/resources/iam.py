"""IAM: roles, their policies, and instance profiles."""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar, Final

from typing_extensions import override

from emulator.plugin.aws import Aws, tag_list, tag_map
from emulator.plugin.resource import TAGS, ResourceType, present
from emulator.plugin.schema import Fields, Input, Values

_NAME: Final = Input(force_new=True, computed=True)
_PATH: Final = Input(force_new=True, default="/")
_GONE: Final = frozenset({"NoSuchEntity"})


def _document(value: Any) -> str:
    """Return a policy document as text; botocore decodes it in some answers."""
    return value if isinstance(value, str) else json.dumps(value)


class Role(ResourceType):
    """A role; its policies are resources of their own."""

    type_name = "aws:iam/role:Role"
    source = "internal/service/iam/role.go at 0040ea6911af00bea2cca6dbb14e86829826ad8e"
    inputs: ClassVar[Fields] = {
        "assumeRolePolicy": Input(required=True, document=True),
        "description": Input(),
        "forceDetachPolicies": Input(default=False, remembered=True),
        "maxSessionDuration": Input(default=3600),
        "name": _NAME,
        "namePrefix": Input(force_new=True, computed=True, remembered=True),
        "path": _PATH,
        "permissionsBoundary": Input(),
        "tags": TAGS,
    }
    outputs = ("arn", "createDate", "tagsAll", "uniqueId")
    name_length = 64
    gone = _GONE

    @override
    def create(self, aws: Aws, inputs: Values) -> str:
        aws.client("iam").create_role(
            RoleName=inputs["name"],
            Path=inputs["path"],
            AssumeRolePolicyDocument=inputs["assumeRolePolicy"],
            MaxSessionDuration=inputs["maxSessionDuration"],
            Tags=tag_list(inputs.get("tags")),
            **present(inputs, description="Description", permissionsBoundary="PermissionsBoundary"),
        )
        return str(inputs["name"])

    @override
    def read(self, aws: Aws, resource_id: str) -> Values | None:
        role = aws.client("iam").get_role(RoleName=resource_id)["Role"]
        return {
            "arn": role["Arn"],
            "assumeRolePolicy": _document(role["AssumeRolePolicyDocument"]),
            "createDate": role["CreateDate"].isoformat(),
            "description": role.get("Description"),
            "maxSessionDuration": role.get("MaxSessionDuration"),
            "name": role["RoleName"],
            "path": role["Path"],
            "permissionsBoundary": role.get("PermissionsBoundary", {}).get("PermissionsBoundaryArn"),
            "tags": tag_map(role.get("Tags")),
            "uniqueId": role["RoleId"],
        }

    @override
    def update(self, aws: Aws, resource_id: str, old: Values, new: Values, changed: Collection[str]) -> None:
        iam = aws.client("iam")
        if "assumeRolePolicy" in changed:
            iam.update_assume_role_policy(RoleName=resource_id, PolicyDocument=new["assumeRolePolicy"])
        if {"description", "maxSessionDuration"} & set(changed):
            iam.update_role(
                RoleName=resource_id,
                Description=new.get("description", ""),
                MaxSessionDuration=new["maxSessionDuration"],
            )
        if "permissionsBoundary" in changed:
            if boundary := new.get("permissionsBoundary"):
                iam.put_role_permissions_boundary(RoleName=resource_id, PermissionsBoundary=boundary)
            else:
                iam.delete_role_permissions_boundary(RoleName=resource_id)

    @override
    def retag(self, aws: Aws, resource_id: str, state: Values, add: Mapping[str, str], remove: Sequence[str]) -> None:
        if remove:
            aws.client("iam").untag_role(RoleName=resource_id, TagKeys=remove)
        if add:
            aws.client("iam").tag_role(RoleName=resource_id, Tags=tag_list(add))

    @override
    def delete(self, aws: Aws, resource_id: str, state: Values) -> None:
        iam = aws.client("iam")
        if state.get("forceDetachPolicies"):
            for policy in iam.list_attached_role_policies(RoleName=resource_id)["AttachedPolicies"]:
                iam.detach_role_policy(RoleName=resource_id, PolicyArn=policy["PolicyArn"])
            for name in iam.list_role_policies(RoleName=resource_id)["PolicyNames"]:
                iam.delete_role_policy(RoleName=resource_id, PolicyName=name)
        iam.delete_role(RoleName=resource_id)


class RolePolicyAttachment(ResourceType):
    """A managed policy on a role; the id is `<role>/<policy ARN>`, the form that an import takes."""

    type_name = "aws:iam/rolePolicyAttachment:RolePolicyAttachment"
    source = "internal/service/iam/role_policy_attachment.go at 04c79849dbe7fbe76c3054b364357bcdaade9ac5"
    inputs: ClassVar[Fields] = {
        "policyArn": Input(required=True, force_new=True),
        "role": Input(required=True, force_new=True),
    }
    name = None
    gone = _GONE

    @override
    def create(self, aws: Aws, inputs: Values) -> str:
        aws.client("iam").attach_role_policy(RoleName=inputs["role"], PolicyArn=inputs["policyArn"])
        return f"{inputs['role']}/{inputs['policyArn']}"

    @override
    def read(self, aws: Aws, resource_id: str) -> Values | None:
        role, arn = resource_id.split("/", 1)
        pages = aws.client("iam").get_paginator("list_attached_role_policies").paginate(RoleName=role)
        if any(policy["PolicyArn"] == arn for page in pages for policy in page["AttachedPolicies"]):
            return {"policyArn": arn, "role": role}
        return None

    @override
    def delete(self, aws: Aws, resource_id: str, state: Values) -> None:
        role, arn = resource_id.split("/", 1)
        aws.client("iam").detach_role_policy(RoleName=role, PolicyArn=arn)


class RolePolicy(ResourceType):
    """A policy that is part of a role; the id is `<role>:<policy>`."""

    type_name = "aws:iam/rolePolicy:RolePolicy"
    source = "internal/service/iam/role_policy.go at 02f97af85f89a04e8ed89f5e8b64a9a67f3cfe07"
    inputs: ClassVar[Fields] = {
        "name": _NAME,
        "namePrefix": Input(force_new=True, computed=True, remembered=True),
        "policy": Input(required=True, document=True),
        "role": Input(required=True, force_new=True),
    }
    name_length = 128
    gone = _GONE

    @override
    def create(self, aws: Aws, inputs: Values) -> str:
        resource_id = f"{inputs['role']}:{inputs['name']}"
        self._put(aws, resource_id, inputs)
        return resource_id

    @staticmethod
    def _put(aws: Aws, resource_id: str, inputs: Values) -> None:
        role, name = resource_id.split(":", 1)
        aws.client("iam").put_role_policy(RoleName=role, PolicyName=name, PolicyDocument=inputs["policy"])

    @override
    def read(self, aws: Aws, resource_id: str) -> Values | None:
        role, name = resource_id.split(":", 1)
        answer = aws.client("iam").get_role_policy(RoleName=role, PolicyName=name)
        return {"name": name, "policy": _document(answer["PolicyDocument"]), "role": role}

    @override
    def update(self, aws: Aws, resource_id: str, old: Values, new: Values, changed: Collection[str]) -> None:
        self._put(aws, resource_id, new)

    @override
    def delete(self, aws: Aws, resource_id: str, state: Values) -> None:
        role, name = resource_id.split(":", 1)
        aws.client("iam").delete_role_policy(RoleName=role, PolicyName=name)


class Policy(ResourceType):
    """A managed policy; another document is another version of it, of which AWS keeps five."""

    type_name = "aws:iam/policy:Policy"
    source = "internal/service/iam/policy.go at 01ccd9a2d118a3e81a9649759bf14303526dc9e6"
    inputs: ClassVar[Fields] = {
        "description": Input(force_new=True),
        "name": _NAME,
        "namePrefix": Input(force_new=True, computed=True, remembered=True),
        "path": _PATH,
        "policy": Input(required=True, document=True),
        "tags": TAGS,
    }
    outputs = ("arn", "attachmentCount", "policyId", "tagsAll")
    name_length = 128
    gone = _GONE

    @override
    def create(self, aws: Aws, inputs: Values) -> str:
        answer = aws.client("iam").create_policy(
            PolicyName=inputs["name"],
            Path=inputs["path"],
            PolicyDocument=inputs["policy"],
            Tags=tag_list(inputs.get("tags")),
            **present(inputs, description="Description"),
        )
        return str(answer["Policy"]["Arn"])

    @override
    def read(self, aws: Aws, resource_id: str) -> Values | None:
        iam = aws.client("iam")
        policy = iam.get_policy(PolicyArn=resource_id)["Policy"]
        version = iam.get_policy_version(PolicyArn=resource_id, VersionId=policy["DefaultVersionId"])
        return {
            "arn": policy["Arn"],
            "attachmentCount": policy["AttachmentCount"],
            "description": policy.get("Description"),
            "name": policy["PolicyName"],
            "path": policy["Path"],
            "policy": _document(version["PolicyVersion"]["Document"]),
            "policyId": policy["PolicyId"],
            "tags": tag_map(policy.get("Tags")),
        }

    @override
    def update(self, aws: Aws, resource_id: str, old: Values, new: Values, changed: Collection[str]) -> None:
        if "policy" not in changed:
            return
        iam = aws.client("iam")
        others = self._other_versions(aws, resource_id)
        if len(others) >= 4:
            oldest = min(others, key=lambda version: version["CreateDate"])
            iam.delete_policy_version(PolicyArn=resource_id, VersionId=oldest["VersionId"])
        iam.create_policy_version(PolicyArn=resource_id, PolicyDocument=new["policy"], SetAsDefault=True)

    @staticmethod
    def _other_versions(aws: Aws, resource_id: str) -> list[Any]:
        versions = aws.client("iam").list_policy_versions(PolicyArn=resource_id)["Versions"]
        return [version for version in versions if not version["IsDefaultVersion"]]

    @override
    def retag(self, aws: Aws, resource_id: str, state: Values, add: Mapping[str, str], remove: Sequence[str]) -> None:
        if remove:
            aws.client("iam").untag_policy(PolicyArn=resource_id, TagKeys=remove)
        if add:
            aws.client("iam").tag_policy(PolicyArn=resource_id, Tags=tag_list(add))

    @override
    def delete(self, aws: Aws, resource_id: str, state: Values) -> None:
        for version in self._other_versions(aws, resource_id):
            aws.client("iam").delete_policy_version(PolicyArn=resource_id, VersionId=version["VersionId"])
        aws.client("iam").delete_policy(PolicyArn=resource_id)


class InstanceProfile(ResourceType):
    """An instance profile with at most one role."""

    type_name = "aws:iam/instanceProfile:InstanceProfile"
    source = "internal/service/iam/instance_profile.go at 013f1736b90439e5a19567a87d3e5cd11858c420"
    inputs: ClassVar[Fields] = {
        "name": _NAME,
        "namePrefix": Input(force_new=True, computed=True, remembered=True),
        "path": _PATH,
        "role": Input(),
        "tags": TAGS,
    }
    outputs = ("arn", "createDate", "tagsAll", "uniqueId")
    name_length = 128
    gone = _GONE

    @override
    def create(self, aws: Aws, inputs: Values) -> str:
        aws.client("iam").create_instance_profile(
            InstanceProfileName=inputs["name"], Path=inputs["path"], Tags=tag_list(inputs.get("tags"))
        )
        return str(inputs["name"])

    @override
    def settle(self, aws: Aws, resource_id: str, inputs: Values) -> None:
        if role := inputs.get("role"):
            aws.client("iam").add_role_to_instance_profile(InstanceProfileName=resource_id, RoleName=role)

    @override
    def read(self, aws: Aws, resource_id: str) -> Values | None:
        profile = aws.client("iam").get_instance_profile(InstanceProfileName=resource_id)["InstanceProfile"]
        return {
            "arn": profile["Arn"],
            "createDate": profile["CreateDate"].isoformat(),
            "name": profile["InstanceProfileName"],
            "path": profile["Path"],
            "role": next((role["RoleName"] for role in profile["Roles"]), None),
            "tags": tag_map(profile.get("Tags")),
            "uniqueId": profile["InstanceProfileId"],
        }

    @override
    def update(self, aws: Aws, resource_id: str, old: Values, new: Values, changed: Collection[str]) -> None:
        if role := old.get("role"):
            aws.client("iam").remove_role_from_instance_profile(InstanceProfileName=resource_id, RoleName=role)
        self.settle(aws, resource_id, new)

    @override
    def retag(self, aws: Aws, resource_id: str, state: Values, add: Mapping[str, str], remove: Sequence[str]) -> None:
        if remove:
            aws.client("iam").untag_instance_profile(InstanceProfileName=resource_id, TagKeys=remove)
        if add:
            aws.client("iam").tag_instance_profile(InstanceProfileName=resource_id, Tags=tag_list(add))

    @override
    def delete(self, aws: Aws, resource_id: str, state: Values) -> None:
        profile = aws.client("iam").get_instance_profile(InstanceProfileName=resource_id)["InstanceProfile"]
        for role in profile["Roles"]:
            aws.client("iam").remove_role_from_instance_profile(
                InstanceProfileName=resource_id, RoleName=role["RoleName"]
            )
        aws.client("iam").delete_instance_profile(InstanceProfileName=resource_id)
