"""The functions (data sources) that `infra/` calls, with the properties of their results in `pulumi_aws`."""

from collections.abc import Mapping
from typing import Any, Final

from emulator.plugin.aws import Aws, PluginError, tag_map
from emulator.plugin.resource import Function
from emulator.plugin.schema import Values


def _filters(args: Values, **names: str) -> list[dict[str, Any]]:
    """Return EC2's filters of a function's `filters`, its `tags`, and the arguments in `names`."""
    filters = [{"Name": item["name"], "Values": item["values"]} for item in args.get("filters") or ()]
    filters += [{"Name": f"tag:{key}", "Values": [value]} for key, value in (args.get("tags") or {}).items()]
    for name, parameter in names.items():
        if name in args:
            value = args[name]
            filters.append({"Name": parameter, "Values": [str(value).lower() if isinstance(value, bool) else value]})
    return filters


def _the_one(found: list[Any], what: str) -> Mapping[str, Any]:
    """Return the only match, as the provider's data sources of single things do."""
    if len(found) != 1:
        raise PluginError(f"{'no' if not found else 'multiple'} matching {what} found")
    return dict(found[0])


def _ids(aws: Aws, args: Values, ids: list[str]) -> Values:
    """Return the result of a function that lists ids."""
    tags = args.get("tags", {})
    return {"filters": args.get("filters"), "id": aws.region, "ids": ids, "region": aws.region, "tags": tags}


def get_vpcs(aws: Aws, args: Values) -> Values:
    """List the ids of VPCs."""
    pages = aws.client("ec2").get_paginator("describe_vpcs").paginate(Filters=_filters(args))
    ids = sorted(vpc["VpcId"] for page in pages for vpc in page["Vpcs"])
    return _ids(aws, args, ids)


def get_subnets(aws: Aws, args: Values) -> Values:
    """List the ids of subnets."""
    pages = aws.client("ec2").get_paginator("describe_subnets").paginate(Filters=_filters(args))
    ids = sorted(subnet["SubnetId"] for page in pages for subnet in page["Subnets"])
    return _ids(aws, args, ids)


def get_security_groups(aws: Aws, args: Values) -> Values:
    """List the ids of security groups, with their ARNs and VPCs in step."""
    pages = aws.client("ec2").get_paginator("describe_security_groups").paginate(Filters=_filters(args))
    found = sorted((group for page in pages for group in page["SecurityGroups"]), key=lambda group: group["GroupId"])
    return {
        **_ids(aws, args, [group["GroupId"] for group in found]),
        "arns": [aws.account.arn("ec2", f"security-group/{group['GroupId']}", group["OwnerId"]) for group in found],
        "vpcIds": [group["VpcId"] for group in found],
    }


def get_subnet(aws: Aws, args: Values) -> Values:
    """Describe one subnet."""
    names = {
        "availabilityZone": "availability-zone",
        "availabilityZoneId": "availability-zone-id",
        "cidrBlock": "cidr-block",
        "defaultForAz": "default-for-az",
        "state": "state",
        "vpcId": "vpc-id",
    }
    only = {"SubnetIds": [args["id"]]} if "id" in args else {}
    answer = aws.client("ec2").describe_subnets(Filters=_filters(args, **names), **only)
    subnet = _the_one(answer["Subnets"], "EC2 Subnet")
    return {
        "arn": subnet["SubnetArn"],
        "assignIpv6AddressOnCreation": subnet["AssignIpv6AddressOnCreation"],
        "availabilityZone": subnet["AvailabilityZone"],
        "availabilityZoneId": subnet["AvailabilityZoneId"],
        "availableIpAddressCount": subnet["AvailableIpAddressCount"],
        "cidrBlock": subnet["CidrBlock"],
        "defaultForAz": subnet["DefaultForAz"],
        "id": subnet["SubnetId"],
        "mapPublicIpOnLaunch": subnet["MapPublicIpOnLaunch"],
        "ownerId": subnet["OwnerId"],
        "region": aws.region,
        "state": subnet["State"],
        "tags": tag_map(subnet.get("Tags")),
        "vpcId": subnet["VpcId"],
    }


def get_instance_type(aws: Aws, args: Values) -> Values:
    """Describe the hardware of an instance type; memory in MiB."""
    answer = aws.client("ec2").describe_instance_types(InstanceTypes=[args["instanceType"]])
    found = _the_one(answer["InstanceTypes"], "EC2 Instance Type")
    gpus = [
        {
            "count": gpu["Count"],
            "manufacturer": gpu["Manufacturer"],
            "memorySize": gpu["MemoryInfo"]["SizeInMiB"],
            "name": gpu["Name"],
        }
        for gpu in found.get("GpuInfo", {}).get("Gpus", ())
    ]
    return {
        "bareMetal": found["BareMetal"],
        "burstablePerformanceSupported": found["BurstablePerformanceSupported"],
        "currentGeneration": found["CurrentGeneration"],
        "defaultCores": found["VCpuInfo"].get("DefaultCores"),
        "defaultThreadsPerCore": found["VCpuInfo"].get("DefaultThreadsPerCore"),
        "defaultVcpus": found["VCpuInfo"]["DefaultVCpus"],
        "freeTierEligible": found["FreeTierEligible"],
        "gpuses": gpus,
        "hibernationSupported": found["HibernationSupported"],
        "hypervisor": found.get("Hypervisor"),
        "id": found["InstanceType"],
        "instanceStorageSupported": found["InstanceStorageSupported"],
        "instanceType": found["InstanceType"],
        "memorySize": found["MemoryInfo"]["SizeInMiB"],
        "region": aws.region,
        "supportedArchitectures": found["ProcessorInfo"]["SupportedArchitectures"],
        "supportedRootDeviceTypes": found["SupportedRootDeviceTypes"],
        "supportedUsagesClasses": found["SupportedUsageClasses"],
        "supportedVirtualizationTypes": found["SupportedVirtualizationTypes"],
        "sustainedClockSpeed": found["ProcessorInfo"].get("SustainedClockSpeedInGhz"),
        "totalGpuMemory": found.get("GpuInfo", {}).get("TotalGpuMemoryInMiB"),
    }


def get_instance_type_offerings(aws: Aws, args: Values) -> Values:
    """List where instance types are offered: three lists in step, of types, locations and kinds of location."""
    kind = {"LocationType": args["locationType"]} if "locationType" in args else {}
    paginator = aws.client("ec2").get_paginator("describe_instance_type_offerings")
    pages = paginator.paginate(Filters=_filters(args), **kind)
    found = [offer for page in pages for offer in page["InstanceTypeOfferings"]]
    found.sort(key=lambda offer: (offer["InstanceType"], offer["Location"]))
    return {
        "filters": args.get("filters"),
        "id": aws.region,
        "instanceTypes": [offer["InstanceType"] for offer in found],
        "locationType": args.get("locationType"),
        "locationTypes": [offer["LocationType"] for offer in found],
        "locations": [offer["Location"] for offer in found],
        "region": aws.region,
    }


def get_caller_identity(aws: Aws, args: Values) -> Values:  # noqa: ARG001 - it takes none
    """Tell who is calling."""
    found = aws.client("sts").get_caller_identity()
    return {"accountId": found["Account"], "arn": found["Arn"], "id": found["Account"], "userId": found["UserId"]}


def get_region(aws: Aws, args: Values) -> Values:
    """Describe the provider's region, or another one."""
    name = args.get("region") or args.get("name") or aws.region
    regions = aws.client("ec2").describe_regions(RegionNames=[name])["Regions"]
    found = _the_one(regions, "EC2 Region")
    return {
        "description": name,
        "endpoint": found["Endpoint"].removeprefix("https://"),
        "id": name,
        "name": name,
        "region": name,
    }


def get_partition(aws: Aws, args: Values) -> Values:  # noqa: ARG001 - it takes none
    """Describe the partition, which for the emulated account is the public one."""
    suffix = "amazonaws.com"
    return {"dnsSuffix": suffix, "id": "aws", "partition": "aws", "reverseDnsPrefix": "com.amazonaws"}


FUNCTIONS: Final[Mapping[str, Function]] = {
    "aws:ec2/getInstanceType:getInstanceType": Function(frozenset({"instanceType"}), get_instance_type),
    "aws:ec2/getInstanceTypeOfferings:getInstanceTypeOfferings": Function(
        frozenset({"filters", "locationType"}), get_instance_type_offerings
    ),
    "aws:ec2/getSecurityGroups:getSecurityGroups": Function(frozenset({"filters", "tags"}), get_security_groups),
    "aws:ec2/getSubnet:getSubnet": Function(
        frozenset(
            {
                "availabilityZone",
                "availabilityZoneId",
                "cidrBlock",
                "defaultForAz",
                "filters",
                "id",
                "state",
                "tags",
                "vpcId",
            }
        ),
        get_subnet,
    ),
    "aws:ec2/getSubnets:getSubnets": Function(frozenset({"filters", "tags"}), get_subnets),
    "aws:ec2/getVpcs:getVpcs": Function(frozenset({"filters", "tags"}), get_vpcs),
    "aws:index/getCallerIdentity:getCallerIdentity": Function(frozenset(), get_caller_identity),
    "aws:index/getPartition:getPartition": Function(frozenset(), get_partition),
    "aws:index/getRegion:getRegion": Function(frozenset({"name", "region"}), get_region),
}
