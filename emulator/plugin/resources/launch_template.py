"""EC2 launch templates."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar, Final

from typing_extensions import override

from emulator.plugin.aws import Aws, capitalised, tag_list, tag_map, uncapitalised
from emulator.plugin.resource import TAGS, ResourceType, present
from emulator.plugin.resources.security_group import retag_ec2
from emulator.plugin.schema import Fields, Input, Values

_EBS: Final[Fields] = {
    # The Terraform provider takes these two as text that may be empty; here they are what Pulumi's type says, text.
    "deleteOnTermination": Input(),
    "encrypted": Input(),
    "iops": Input(computed=True),
    "kmsKeyId": Input(),
    "snapshotId": Input(),
    "throughput": Input(computed=True),
    "volumeSize": Input(computed=True),
    "volumeType": Input(computed=True),
}
_DATA: Final[Fields] = {
    "blockDeviceMappings": Input(
        fields={
            "deviceName": Input(),
            "ebs": Input(fields=_EBS),
            "noDevice": Input(),
            "virtualName": Input(),
        }
    ),
    "metadataOptions": Input(
        computed=True,
        fields={
            "httpEndpoint": Input(computed=True),
            "httpProtocolIpv6": Input(computed=True),
            "httpPutResponseHopLimit": Input(computed=True),
            "httpTokens": Input(computed=True),
            "instanceMetadataTags": Input(computed=True),
        },
    ),
    "tagSpecifications": Input(fields={"resourceType": Input(), "tags": Input()}),
    "userData": Input(),
}
_TEXT_FLAGS: Final = ("deleteOnTermination", "encrypted")


def _launch_data(inputs: Values) -> dict[str, Any]:
    """Return what is in a version as EC2 takes it."""
    data: dict[str, Any] = {}
    for name in _DATA.keys() & inputs.keys():
        value = inputs[name]
        if name == "blockDeviceMappings":
            value = [{**mapping, **_with_flags(mapping)} for mapping in value]
        elif name == "tagSpecifications":
            value = [{"resourceType": item["resourceType"]} for item in value]
        data[name[0].upper() + name[1:]] = capitalised(value)
    for target, item in zip(data.get("TagSpecifications", ()), inputs.get("tagSpecifications", ()), strict=False):
        target["Tags"] = tag_list(item.get("tags"))
    return data


def _with_flags(mapping: Values) -> Values:
    """Return a mapping's `ebs` with real booleans for those that Pulumi has as text."""
    if not (ebs := mapping.get("ebs")):
        return {}
    return {"ebs": {k: str(v).lower() == "true" if k in _TEXT_FLAGS else v for k, v in ebs.items() if v != ""}}


def _from_launch_data(data: Mapping[str, Any]) -> Values:
    """Return EC2's description of a version as Pulumi has it."""
    values = uncapitalised({k: v for k, v in data.items() if k != "TagSpecifications"})
    values["tagSpecifications"] = [
        {"resourceType": item["ResourceType"], "tags": tag_map(item["Tags"])}
        for item in data.get("TagSpecifications", ())
        if item["ResourceType"] != "launch-template"  # moto puts the template's own tags here too
    ]
    for mapping in values.get("blockDeviceMappings") or ():
        ebs = mapping.get("ebs") or {}
        ebs.update({flag: str(ebs[flag]).lower() for flag in _TEXT_FLAGS if flag in ebs})
    return dict(values)


class LaunchTemplate(ResourceType):
    """A launch template; whatever changes in it makes another version of it."""

    type_name = "aws:ec2/launchTemplate:LaunchTemplate"
    source = "internal/service/ec2/ec2_launch_template.go at c49358f89b43a4d9c8e533cd0610cd72cbd11eb3"
    inputs: ClassVar[Fields] = {
        **_DATA,
        "defaultVersion": Input(computed=True),
        "description": Input(),
        "name": Input(force_new=True, computed=True),
        "namePrefix": Input(force_new=True, computed=True, remembered=True),
        "tags": TAGS,
        "updateDefaultVersion": Input(remembered=True),
    }
    outputs = ("arn", "latestVersion", "region", "tagsAll")
    name_length = 128
    gone = frozenset({"InvalidLaunchTemplateId.NotFound", "InvalidLaunchTemplateId.NotFoundException"})

    @override
    def create(self, aws: Aws, inputs: Values) -> str:
        tags = tag_list(inputs.get("tags"))
        specification = {"TagSpecifications": [{"ResourceType": "launch-template", "Tags": tags}]} if tags else {}
        answer = aws.client("ec2").create_launch_template(
            LaunchTemplateName=inputs["name"],
            LaunchTemplateData=_launch_data(inputs),
            **present(inputs, description="VersionDescription"),
            **specification,
        )
        return str(answer["LaunchTemplate"]["LaunchTemplateId"])

    @override
    def read(self, aws: Aws, resource_id: str) -> Values | None:
        ec2 = aws.client("ec2")
        template = ec2.describe_launch_templates(LaunchTemplateIds=[resource_id])["LaunchTemplates"][0]
        latest = ec2.describe_launch_template_versions(LaunchTemplateId=resource_id, Versions=["$Latest"])
        version = latest["LaunchTemplateVersions"][0]
        # Not the template's own `Tags`: in the emulated account those are what they were at first.
        tags = ec2.describe_tags(Filters=[{"Name": "resource-id", "Values": [resource_id]}])["Tags"]
        owner = template["CreatedBy"].split(":")[4] if "CreatedBy" in template else aws.account.account_id
        return {
            **_from_launch_data(version["LaunchTemplateData"]),
            "arn": aws.account.arn("ec2", f"launch-template/{resource_id}", owner),
            "defaultVersion": template["DefaultVersionNumber"],
            "description": version.get("VersionDescription"),
            "latestVersion": template["LatestVersionNumber"],
            "name": template["LaunchTemplateName"],
            "tags": tag_map(tags),
        }

    @override
    def update(self, aws: Aws, resource_id: str, old: Values, new: Values, changed: Collection[str]) -> None:
        ec2 = aws.client("ec2")
        default = new.get("defaultVersion") if "defaultVersion" in changed else None
        if {*_DATA, "description"} & set(changed):
            answer = ec2.create_launch_template_version(
                LaunchTemplateId=resource_id,
                LaunchTemplateData=_launch_data(new),
                **present(new, description="VersionDescription"),
            )
            if new.get("updateDefaultVersion"):
                default = answer["LaunchTemplateVersion"]["VersionNumber"]
        elif "updateDefaultVersion" in changed and new.get("updateDefaultVersion"):
            template = ec2.describe_launch_templates(LaunchTemplateIds=[resource_id])["LaunchTemplates"][0]
            default = template["LatestVersionNumber"]
        if default:
            ec2.modify_launch_template(LaunchTemplateId=resource_id, DefaultVersion=str(default))

    @override
    def updated_outputs(self, changed: Collection[str], new: Values) -> tuple[str, ...]:
        if not {*_DATA, "description"} & set(changed):
            return ()
        return ("latestVersion", "defaultVersion") if new.get("updateDefaultVersion") else ("latestVersion",)

    @override
    def retag(self, aws: Aws, resource_id: str, state: Values, add: Mapping[str, str], remove: Sequence[str]) -> None:
        retag_ec2(aws, resource_id, add, remove)

    @override
    def delete(self, aws: Aws, resource_id: str, state: Values) -> None:
        aws.client("ec2").delete_launch_template(LaunchTemplateId=resource_id)
