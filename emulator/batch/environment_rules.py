"""What Batch demands of a compute environment; everything here reads and changes nothing.

Sources: CreateComputeEnvironment, UpdateComputeEnvironment and ComputeResource in the AWS Batch API reference;
"Updating compute environments" and "INVALID compute environment" in the AWS Batch user guide.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from emulator.batch.refusals import check_supported, refused

if TYPE_CHECKING:
    from emulator.account import Account
    from emulator.batch.state import ComputeEnvironment

_STRATEGIES = {
    "EC2": frozenset({"BEST_FIT", "BEST_FIT_PROGRESSIVE", "BEST_FIT_PROGRESSIVE_ORDERED"}),
    "SPOT": frozenset(
        {
            "BEST_FIT",
            "BEST_FIT_PROGRESSIVE",
            "BEST_FIT_PROGRESSIVE_ORDERED",
            "SPOT_CAPACITY_OPTIMIZED",
            "SPOT_PRICE_CAPACITY_OPTIMIZED",
            "SPOT_CAPACITY_OPTIMIZED_PRIORITIZED",
        }
    ),
}
# Only these need no infrastructure update, so they change whatever role and strategy an environment has.
_ALWAYS_UPDATABLE = frozenset({"minvCpus", "maxvCpus", "desiredvCpus"})
# An empty string in an update removes these.
_REMOVABLE = frozenset({"imageId", "ec2KeyPair", "placementGroup"})
_BUNDLES = {"optimal": "x86_64", "default_x86_64": "x86_64", "default_arm64": "arm64"}
_IMAGE_TYPES = frozenset({"ECS_AL2", "ECS_AL2_NVIDIA", "ECS_AL2023", "ECS_AL2023_NVIDIA"})
# Families that the images of Amazon Linux 2023 do not run on.
_NOT_ON_IMAGE = {"ECS_AL2023": ("a1",), "ECS_AL2023_NVIDIA": ("p3", "g3", "g5g")}
_EC2_ONLY = ("eksConfiguration", "unmanagedvCpus", "context", "ecsSettings")
_RESOURCES_UNSUPPORTED = ("managedInstancesProvider", "scalingPolicy", "capacityTags")


def accepted_resources(account: "Account", request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the compute resources of a request to create an environment, with what Batch adds to them.

    Raises:
        ApiError: Batch refuses the request.
    """
    check_supported(request, _EC2_ONLY)
    if request["type"] != "MANAGED":
        check_supported({request["type"]: None}, ("UNMANAGED",))
    resources = request.get("computeResources")
    if resources is None:
        raise refused("computeResources must be provided for a MANAGED compute environment")
    check_supported(resources, _RESOURCES_UNSUPPORTED)
    _check_kind(resources["type"])
    if not resources.get("instanceRole"):
        raise refused("Instance role is required.")
    if resources.get("minvCpus") is None:
        raise refused("Resource minvCpus is required.")
    for member in ("instanceTypes", "subnets"):
        if not resources.get(member):
            raise refused(f"{member} must be provided for an EC2 compute environment.")
    image = _default_image(account, resources["instanceTypes"])
    accepted = {"desiredvCpus": resources["minvCpus"], "ec2Configuration": [{"imageType": image}], **resources}
    check_resources(account, accepted)
    return accepted


def _check_kind(kind: str) -> None:
    if kind not in _STRATEGIES:
        check_supported({kind: None}, (kind,))


def check_resources(account: "Account", resources: Mapping[str, Any]) -> None:
    """Refuse compute resources, as they were sent or as an update would make them, that Batch does not take."""
    kind = resources["type"]
    strategy = resources.get("allocationStrategy")
    if strategy is not None and strategy not in _STRATEGIES[kind]:
        raise refused(f"Invalid compute resource allocation strategy {strategy} for type {kind}")
    if kind == "SPOT" and strategy in (None, "BEST_FIT") and not resources.get("spotIamFleetRole"):
        raise refused("spotIamFleetRole is required for SPOT compute resources with the BEST_FIT allocation strategy")
    if not 1 <= resources.get("bidPercentage", 100) <= 100:
        raise refused("bidPercentage must be greater than 0 and at most 100")
    _check_vcpus(resources)
    architecture_of(account, resources["instanceTypes"])
    _check_images(resources)
    template = resources.get("launchTemplate")
    if template and bool(template.get("launchTemplateId")) == bool(template.get("launchTemplateName")):
        raise refused("Either launchTemplateId or launchTemplateName must be provided, but not both")


def _check_vcpus(resources: Mapping[str, Any]) -> None:
    low, high = resources["minvCpus"], resources["maxvCpus"]
    if low < 0 or high < 0:
        raise refused("minvCpus and maxvCpus must not be negative")
    if low > high:
        raise refused("minvCpus must be less than or equal to maxvCpus")
    if not low <= resources.get("desiredvCpus", low) <= high:
        raise refused("desiredvCpus should be between minvCpus and maxvCpus")


def architecture_of(account: "Account", instance_types: list[str]) -> str:
    """Tell the one architecture of the instance types and families of an environment.

    Raises:
        ApiError: A type that does not exist, or types of different architectures.
    """
    architectures = set()
    for name in instance_types:
        members = [name] if "." in name else account.instance_family(name)
        known = [found for member in members if (found := account.instance_type(member))]
        if name in _BUNDLES:
            architectures.add(_BUNDLES[name])
        elif known:
            architectures.add(known[0].architecture)
        else:
            raise refused(f"Instance type can only be one of the types and families that EC2 has; {name} is not one")
    if len(architectures) > 1:
        raise refused("The instance types of a compute environment must share the same architecture")
    return architectures.pop()


def _check_images(resources: Mapping[str, Any]) -> None:
    images = resources.get("ec2Configuration", [])
    if len(images) > 2:
        raise refused("ec2Configuration can have at most two entries")
    for image in images:
        kind = image["imageType"]
        if kind not in _IMAGE_TYPES:
            raise refused(f"Invalid imageType {kind}")
        if image.get("imageIdOverride") or resources.get("imageId"):
            continue
        if kind.startswith("ECS_AL2") and not kind.startswith("ECS_AL2023"):
            raise refused(f"{kind}: AWS Batch no longer provides Amazon Linux 2 images for new compute environments")
        for name in resources["instanceTypes"]:
            if name.split(".")[0] in _NOT_ON_IMAGE.get(kind, ()):
                raise refused(f"{kind} does not support the instance type {name}")


def _default_image(account: "Account", instance_types: list[str]) -> str:
    """Name the image type that Batch gives an environment without `ec2Configuration`."""
    found = [account.instance_type(name) for name in instance_types]
    return "ECS_AL2023_NVIDIA" if any(kind is not None and kind.gpus for kind in found) else "ECS_AL2023"


def merged(resources: Mapping[str, Any], update: Mapping[str, Any]) -> dict[str, Any]:
    """Return the resources as an update would leave them: what it does not name stays.

    Batch keeps the desired vCPUs within new limits by itself.
    """
    result = {**resources, **{name: value for name, value in update.items() if name != "updateToLatestImageVersion"}}
    template = update.get("launchTemplate")
    if template is not None and "" in (template.get("launchTemplateId"), template.get("launchTemplateName")):
        del result["launchTemplate"]
    for name in _REMOVABLE & update.keys():
        if update[name] == "":
            del result[name]
    if "desiredvCpus" not in update:
        result["desiredvCpus"] = max(result["minvCpus"], min(result["desiredvCpus"], result["maxvCpus"]))
    return result


def needs_new_hosts(before: Mapping[str, Any], after: Mapping[str, Any], update: Mapping[str, Any]) -> bool:
    """Whether an update is one of the infrastructure: its hosts are of another kind than those that are there.

    Source: "Performing infrastructure updates", AWS Batch user guide.
    """
    changed = (name for name in update.keys() - _ALWAYS_UPDATABLE if before.get(name) != after.get(name))
    return bool(update.get("updateToLatestImageVersion")) or any(changed)


def check_update(account: "Account", environment: "ComputeEnvironment", request: Mapping[str, Any]) -> None:
    """Refuse an update that Batch does not do in place."""
    check_supported(request, _EC2_ONLY)
    update = request.get("computeResources", {})
    check_supported(update, _RESOURCES_UNSUPPORTED)
    _check_kind(update.get("type", environment.compute_resources["type"]))
    now = environment.compute_resources
    linked_role = account.batch_service_linked_role_arn
    is_linked = environment.service_role == linked_role
    role = request.get("serviceRole")
    if role is not None and (role == linked_role) != is_linked:
        raise refused("A compute environment can not change between a service-linked role and a regular IAM role")
    infrastructure = sorted(update.keys() - _ALWAYS_UPDATABLE)
    if infrastructure and not is_linked:
        raise refused(
            f"Following fields [{', '.join(infrastructure)}] can be updated only for Non-fargate Compute Environment "
            "having a Batch Service Linked Role"
        )
    if (infrastructure or "updatePolicy" in request) and not _updatable(is_linked=is_linked, resources=now):
        what = infrastructure or ["updatePolicy"]
        raise refused(
            f"Following fields [{', '.join(what)}] can not be updated for Compute Environment with allocation strategy "
            f"{now.get('allocationStrategy', 'BEST_FIT')} and service role {environment.service_role}"
        )
    desired = update.get("desiredvCpus")
    if desired is not None and desired < now["desiredvCpus"]:
        raise refused(
            "Manually scaling down compute environment is not supported. Disconnecting job queues from compute "
            "environment will cause it to scale-down to minvCpus."
        )
    check_resources(account, merged(now, update))


def _updatable(*, is_linked: bool, resources: Mapping[str, Any]) -> bool:
    """Whether Batch does infrastructure updates in place for an environment."""
    return is_linked and resources.get("allocationStrategy", "BEST_FIT") != "BEST_FIT"


def unhealthy(account: "Account", service_role: str, resources: Mapping[str, Any]) -> str | None:
    """Say why Batch can not work with an environment, as the status reason of an INVALID one; None when it can.

    Batch takes names and ARNs as they are sent, and meets what is wrong with them when it uses them.
    """
    if not account.role_trusts(service_role, "batch.amazonaws.com"):
        return (
            "CLIENT_ERROR - Not authorized to perform sts:AssumeRole "
            "(Service: AWSSecurityTokenService; Status Code: 403; Error Code: AccessDenied)"
        )
    fleet_role = resources.get("spotIamFleetRole")
    if fleet_role and not account.role_trusts(fleet_role, "spotfleet.amazonaws.com"):
        return "CLIENT_ERROR - Provided Spot Fleet role is invalid (Service: AmazonEC2; Status Code: 400)"
    if not account.instance_profile_exists(resources["instanceRole"]):
        return f"CLIENT_ERROR - Invalid IamInstanceProfile: {resources['instanceRole']}"
    for subnet in resources["subnets"]:
        if not account.subnet_exists(subnet):
            return f"CLIENT_ERROR - The subnet ID '{subnet}' does not exist (Service: AmazonEC2; Status Code: 400)"
    for group in resources.get("securityGroupIds", []):
        if not account.security_group_exists(group):
            return f"CLIENT_ERROR - The security group '{group}' does not exist (Service: AmazonEC2; Status Code: 400)"
    template = resources.get("launchTemplate")
    if template and not account.launch_template_exists(
        template_id=template.get("launchTemplateId"),
        name=template.get("launchTemplateName"),
        version=template.get("version"),
    ):
        return "CLIENT_ERROR - You must use a valid fully-formed launch template. The specified one does not exist."
    return None
