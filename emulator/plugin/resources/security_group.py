"""EC2 security groups with their rules."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar, Final

from typing_extensions import override

from emulator.plugin.aws import Aws, tag_list, tag_map
from emulator.plugin.resource import TAGS, ResourceType
from emulator.plugin.schema import Fields, Input, Values, canonical

_RULE: Final = Input(
    computed=True,
    unordered=True,
    fields={
        "cidrBlocks": Input(unordered=True),
        "description": Input(),
        "fromPort": Input(required=True),
        "protocol": Input(required=True),
        "securityGroups": Input(unordered=True),
        "self": Input(),
        "toPort": Input(required=True),
    },
)
_EVERYTHING: Final = {"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}  # AWS's rule on a new group
# EC2's name of a rule's sources, the name of one, and Pulumi's name of them all.
_SOURCES: Final = (
    ("IpRanges", "CidrIp", "cidrBlocks"),
    ("UserIdGroupPairs", "GroupId", "securityGroups"),
)


def _permission(rule: Values, group_id: str) -> dict[str, Any]:
    """Return a rule as EC2 takes it."""
    permission: dict[str, Any] = {"IpProtocol": rule["protocol"]}
    if rule["protocol"] != "-1":
        permission |= {"FromPort": rule["fromPort"], "ToPort": rule["toPort"]}
    described = {"Description": rule["description"]} if rule.get("description") else {}
    for parameter, one, name in _SOURCES:
        sources = [*rule.get(name, ()), *([group_id] if name == "securityGroups" and rule.get("self") else [])]
        if sources:
            permission[parameter] = [{one: source, **described} for source in sources]
    return permission


def _rules(permissions: Sequence[Any], group_id: str) -> list[Values]:
    """Return EC2's permissions as rules, one for each description, as the Terraform provider groups them."""
    rules: dict[tuple[str, int, int, str], Values] = {}
    for permission in permissions:
        ports = permission.get("FromPort", 0), permission.get("ToPort", 0)
        for parameter, one, name in _SOURCES:
            for source in permission.get(parameter, ()):
                description = source.get("Description", "")
                rule = rules.setdefault(
                    (permission["IpProtocol"], *ports, description),
                    {"protocol": permission["IpProtocol"], "fromPort": ports[0], "toPort": ports[1]},
                )
                if description:
                    rule["description"] = description
                if source[one] == group_id:
                    rule["self"] = True
                else:
                    rule.setdefault(name, []).append(source[one])
    return list(rules.values())


class SecurityGroup(ResourceType):
    """A security group; rules are added and removed in place."""

    type_name = "aws:ec2/securityGroup:SecurityGroup"
    source = "internal/service/ec2/vpc_security_group.go at cc0fff0ee90634c6bb137ec44732684543b68dbe"
    inputs: ClassVar[Fields] = {
        "description": Input(force_new=True, default="Managed by Pulumi"),
        "egress": _RULE,
        "ingress": _RULE,
        "name": Input(force_new=True, computed=True),
        "namePrefix": Input(force_new=True, computed=True, remembered=True),
        "revokeRulesOnDelete": Input(default=False, remembered=True),
        "tags": TAGS,
        "vpcId": Input(force_new=True, computed=True),
    }
    outputs = ("arn", "ownerId", "region", "tagsAll")
    gone = frozenset({"InvalidGroup.NotFound", "InvalidGroupId.NotFound"})

    @override
    def create(self, aws: Aws, inputs: Values) -> str:
        ec2 = aws.client("ec2")
        vpc_id = inputs.get("vpcId") or self._default_vpc(aws)
        tags = tag_list(inputs.get("tags"))
        specification = {"TagSpecifications": [{"ResourceType": "security-group", "Tags": tags}]} if tags else {}
        answer = ec2.create_security_group(
            GroupName=inputs["name"], Description=inputs["description"], VpcId=vpc_id, **specification
        )
        return str(answer["GroupId"])

    @staticmethod
    def _default_vpc(aws: Aws) -> str:
        vpcs = aws.client("ec2").describe_vpcs(Filters=[{"Name": "is-default", "Values": ["true"]}])["Vpcs"]
        return str(vpcs[0]["VpcId"])

    @override
    def settle(self, aws: Aws, resource_id: str, inputs: Values) -> None:
        # The Terraform provider takes AWS's rule away: a group without egress rules lets nothing out.
        aws.client("ec2").revoke_security_group_egress(GroupId=resource_id, IpPermissions=[_EVERYTHING])
        self.update(aws, resource_id, {}, inputs, ("egress", "ingress"))

    @override
    def read(self, aws: Aws, resource_id: str) -> Values | None:
        group = aws.client("ec2").describe_security_groups(GroupIds=[resource_id])["SecurityGroups"][0]
        return {
            "arn": aws.account.arn("ec2", f"security-group/{resource_id}", group["OwnerId"]),
            "description": group["Description"],
            "egress": _rules(group["IpPermissionsEgress"], resource_id),
            "ingress": _rules(group["IpPermissions"], resource_id),
            "name": group["GroupName"],
            "ownerId": group["OwnerId"],
            "tags": tag_map(group.get("Tags")),
            "vpcId": group["VpcId"],
        }

    @override
    def update(self, aws: Aws, resource_id: str, old: Values, new: Values, changed: Collection[str]) -> None:
        ec2 = aws.client("ec2")
        element = Input(fields=_RULE.fields)
        for direction in {"egress", "ingress"} & set(changed):
            before, after = old.get(direction) or [], new.get(direction) or []
            meant = [canonical(element, rule) for rule in after]
            had = [canonical(element, rule) for rule in before]
            remove = [_permission(rule, resource_id) for rule in before if canonical(element, rule) not in meant]
            add = [_permission(rule, resource_id) for rule in after if canonical(element, rule) not in had]
            if remove:
                getattr(ec2, f"revoke_security_group_{direction}")(GroupId=resource_id, IpPermissions=remove)
            if add:
                getattr(ec2, f"authorize_security_group_{direction}")(GroupId=resource_id, IpPermissions=add)

    @override
    def retag(self, aws: Aws, resource_id: str, state: Values, add: Mapping[str, str], remove: Sequence[str]) -> None:
        retag_ec2(aws, resource_id, add, remove)

    @override
    def delete(self, aws: Aws, resource_id: str, state: Values) -> None:
        ec2 = aws.client("ec2")
        if state.get("revokeRulesOnDelete"):
            group = ec2.describe_security_groups(GroupIds=[resource_id])["SecurityGroups"][0]
            if ingress := group["IpPermissions"]:
                ec2.revoke_security_group_ingress(GroupId=resource_id, IpPermissions=ingress)
            if egress := group["IpPermissionsEgress"]:
                ec2.revoke_security_group_egress(GroupId=resource_id, IpPermissions=egress)
        ec2.delete_security_group(GroupId=resource_id)


def retag_ec2(aws: Aws, resource_id: str, add: Mapping[str, str], remove: Sequence[str]) -> None:
    """Change the tags of anything in EC2."""
    if remove:
        aws.client("ec2").delete_tags(Resources=[resource_id], Tags=[{"Key": key} for key in remove])
    if add:
        aws.client("ec2").create_tags(Resources=[resource_id], Tags=tag_list(add))
