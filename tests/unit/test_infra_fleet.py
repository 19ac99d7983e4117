"""What the program registers: run as it is, against an engine that records."""

from collections.abc import Callable
from typing import Any

import pulumi
import pytest

from infra.outputs import from_outputs

SIX = ["g4dn.4xlarge", "g4dn.xlarge", "r5ad.large", "c5a.large", "c6g.medium", "m6gd.medium"]
MANAGED = "arn:aws:iam::aws:policy/service-role"
Deploy = Callable[..., Any]


def environment(deployment: Any, name: str) -> dict[str, Any]:
    inputs: dict[str, Any] = deployment.one("ComputeEnvironment", name).inputs["computeResources"]
    return inputs


def test_the_first_preview_shows_every_resource_that_up_makes(deploy: Deploy) -> None:
    """What is made inside `apply` would be missing from a preview, where outputs are unknown."""
    shown, made = deploy(preview=True, instanceTypes=SIX), deploy(instanceTypes=SIX)
    assert sorted(each.urn for each in shown.resources) == sorted(each.urn for each in made.resources)
    assert len(made.of("JobQueue")) == len(made.of("ComputeEnvironment")) == 12


def test_the_first_preview_knows_the_names_of_the_queues(deploy: Deploy) -> None:
    shown = deploy(preview=True, instanceTypes=["c5a.large", "g4dn.xlarge"])
    names = ["c5a-large", "c5a-large-spot", "g4dn-xlarge", "g4dn-xlarge-spot"]
    assert shown.outputs["queue_names"] == names
    assert sorted(each.inputs["name"] for each in shown.of("JobQueue")) == names


def test_the_outputs_are_the_contract(deploy: Deploy) -> None:
    outputs = from_outputs(deploy(instanceTypes=["g4dn.xlarge", "c6g.medium"], maxVcpus=64).outputs)
    assert (outputs.region, outputs.account_id) == ("us-east-1", "123456789012")
    assert outputs.log_group == "rl-batch-dev-jobs-1234567"
    assert outputs.ledger_table == "rl-batch-dev-ledger-1234567"
    gpu, arm = outputs.queues["g4dn-xlarge-spot"], outputs.queues["c6g-medium"]
    assert (gpu.vcpus, gpu.memory_mib, gpu.gpus, gpu.gpu_model, gpu.purchase) == (4, 16384, 1, "T4", "spot")
    assert (arm.architecture, arm.gpus, arm.gpu_model, arm.purchase) == ("arm64", 0, None, "on-demand")
    assert gpu.compute_environment == "rl-batch-dev-g4dn-xlarge-spot-1234567"
    assert gpu.max_vcpus == 64


def test_every_resource_has_its_component_as_parent(deploy: Deploy) -> None:
    deployment = deploy(artifactsBucket=True, imageRepository=True, fairShare=True)
    kinds = {each.urn: each.type.rpartition(":")[2] for each in deployment.resources}
    assert {(kinds[each.urn], kinds.get(each.parent)) for each in deployment.resources} == {
        ("ExperimentFleet", None),
        ("BatchRoles", "ExperimentFleet"),
        ("Artifacts", "ExperimentFleet"),
        ("HostNetwork", "ExperimentFleet"),
        ("SweepStorage", "ExperimentFleet"),
        ("InstanceQueues", "ExperimentFleet"),
        ("LaunchTemplate", "ExperimentFleet"),
        ("ComputeEnvironment", "InstanceQueues"),
        ("JobQueue", "InstanceQueues"),
        ("Role", "BatchRoles"),
        ("RolePolicyAttachment", "BatchRoles"),
        ("RolePolicy", "BatchRoles"),
        ("Policy", "BatchRoles"),
        ("InstanceProfile", "BatchRoles"),
        ("SecurityGroup", "HostNetwork"),
        ("Table", "SweepStorage"),
        ("Secret", "SweepStorage"),
        ("LogGroup", "SweepStorage"),
        ("SchedulingPolicy", "ExperimentFleet"),
        ("Bucket", "Artifacts"),
        ("BucketLifecycleConfiguration", "Artifacts"),
        ("BucketPolicy", "Artifacts"),
        ("BucketPublicAccessBlock", "Artifacts"),
        ("BucketServerSideEncryptionConfiguration", "Artifacts"),
        ("Repository", "Artifacts"),
        ("LifecyclePolicy", "Artifacts"),
    }


@pytest.mark.parametrize("roles", [["instance"], ["instance", "batch", "spot-fleet"]])
def test_an_environment_comes_after_its_roles_and_their_permissions_and_goes_before_them(
    deploy: Deploy, roles: list[str]
) -> None:
    """An environment whose role went first stays in DELETING for ever."""
    config = {"serviceRole": "dedicated", "spotAllocationStrategy": "BEST_FIT"} if len(roles) > 1 else {}
    deployment = deploy(**config)
    needed = {
        deployment.one(kind, f"dev-{role}").urn for kind in ("Role", "RolePolicyAttachment") for role in roles
    } | {deployment.one("InstanceProfile", "-instance").urn, deployment.one("SecurityGroup", "-hosts").urn}
    for each in deployment.of("ComputeEnvironment"):
        assert needed <= each.depends_on


def test_hosts_have_the_permissions_of_ecs_instances_through_a_profile_of_the_stack(deploy: Deploy) -> None:
    """A name instead of the stack's own ARN fails in an account that never used Batch by the console."""
    deployment = deploy()
    attachment = deployment.one("RolePolicyAttachment", "-instance")
    assert attachment.inputs["policyArn"] == f"{MANAGED}/AmazonEC2ContainerServiceforEC2Role"
    assert attachment.inputs["role"] == "rl-batch-dev-instance-1234567"
    assert environment(deployment, "-spot")["instanceRole"] == "arn:of:InstanceProfile:rl-batch-dev-instance"


def test_environments_keep_no_instance_and_leave_desired_vcpus_to_batch(deploy: Deploy) -> None:
    for each in deploy(instanceTypes=SIX).of("ComputeEnvironment"):
        resources = each.inputs["computeResources"]
        assert resources["minVcpus"] == 0
        assert "desiredVcpus" not in resources


def test_on_demand_and_spot_differ_in_purchase_strategy_and_bid_only(deploy: Deploy) -> None:
    deployment = deploy(spotBidPercentage=60)
    plain, spot = environment(deployment, "c5a-large"), environment(deployment, "c5a-large-spot")
    assert (plain["type"], plain["allocationStrategy"]) == ("EC2", "BEST_FIT_PROGRESSIVE")
    assert (spot["type"], spot["allocationStrategy"]) == ("SPOT", "SPOT_PRICE_CAPACITY_OPTIMIZED")
    assert spot["bidPercentage"] == 60
    assert plain.keys() ^ spot.keys() == {"bidPercentage"}
    assert {key for key in plain if plain[key] != spot[key]} == {"type", "allocationStrategy"}


def test_the_host_image_fits_the_hardware(deploy: Deploy) -> None:
    """AWS Batch hands out NVIDIA GPUs only; a Radeon type is a CPU type to it."""
    deployment = deploy(instanceTypes=["c5a.large", "g4dn.xlarge", "g4ad.xlarge"])
    images = {name: environment(deployment, name)["ec2Configurations"] for name in ("c5a-large", "g4dn-xlarge")}
    assert images == {"c5a-large": [{"imageType": "ECS_AL2023"}], "g4dn-xlarge": [{"imageType": "ECS_AL2023_NVIDIA"}]}
    assert environment(deployment, "g4ad-xlarge")["ec2Configurations"] == [{"imageType": "ECS_AL2023"}]
    assert deployment.outputs["queues"]["g4ad-xlarge"]["gpus"] == 0


def test_an_image_of_ones_own_overrides_the_one_of_aws(deploy: Deploy) -> None:
    (image,) = environment(deploy(amiId="ami-0123456789abcdef0"), "c5a-large")["ec2Configurations"]
    assert image == {"imageType": "ECS_AL2023", "imageIdOverride": "ami-0123456789abcdef0"}


def test_every_environment_has_the_launch_template_with_a_version_in_figures(deploy: Deploy) -> None:
    deployment = deploy(instanceTypes=SIX, rootVolumeGib=100)
    for each in deployment.of("ComputeEnvironment"):
        template = each.inputs["computeResources"]["launchTemplate"]
        assert template == {"launchTemplateId": "rl-batch-dev-host-id", "version": "1"}
    inputs = deployment.one("LaunchTemplate", "-host").inputs
    assert inputs["metadataOptions"] == {
        "httpEndpoint": "enabled",
        "httpTokens": "required",
        "httpPutResponseHopLimit": 1,
    }
    (volume,) = inputs["blockDeviceMappings"]
    assert volume["deviceName"] == "/dev/xvda"
    assert volume["ebs"] == {
        "volumeType": "gp3",
        "volumeSize": 100,
        "encrypted": "true",
        "deleteOnTermination": "true",
    }


def test_queues_have_time_to_end_their_jobs_and_environments_no_times_that_the_provider_would_ignore(
    deploy: Deploy,
) -> None:
    deployment, none = deploy(), {"create": "", "update": "", "delete": ""}
    assert [each.timeouts for each in deployment.of("JobQueue")] == [none | {"delete": "1h"}] * 2
    assert [each.timeouts for each in deployment.of("ComputeEnvironment")] == [none] * 2


@pytest.mark.parametrize(
    ("config", "on_demand", "spot"),
    [
        ({}, True, True),
        ({"serviceRole": "dedicated"}, False, False),
        ({"spotAllocationStrategy": "BEST_FIT"}, True, False),
        ({"onDemandAllocationStrategy": "BEST_FIT"}, False, True),
    ],
)
def test_an_update_policy_is_sent_only_where_aws_accepts_one(
    deploy: Deploy, config: dict[str, str], on_demand: bool, spot: bool
) -> None:
    deployment = deploy(**config)
    policies = {
        name: deployment.one("ComputeEnvironment", name).inputs.get("updatePolicy")
        for name in ("c5a-large", "c5a-large-spot")
    }
    policy = {"jobExecutionTimeoutMinutes": 360, "terminateJobsOnUpdate": False}
    assert policies == {"c5a-large": policy if on_demand else None, "c5a-large-spot": policy if spot else None}


def test_the_spot_fleet_role_exists_only_for_best_fit(deploy: Deploy) -> None:
    without, with_role = deploy(), deploy(spotAllocationStrategy="BEST_FIT")
    assert [each.name for each in without.of("Role") if "spot" in each.name] == []
    attachment = with_role.one("RolePolicyAttachment", "-spot-fleet")
    assert attachment.inputs["policyArn"] == f"{MANAGED}/AmazonEC2SpotFleetTaggingRole"
    assert environment(with_role, "c5a-large-spot")["spotIamFleetRole"] == "arn:of:Role:rl-batch-dev-spot-fleet"
    assert "spotIamFleetRole" not in environment(with_role, "c5a-large")


def test_a_dedicated_service_role_is_sent_and_the_linked_one_is_not(deploy: Deploy) -> None:
    linked, dedicated = deploy(), deploy(serviceRole="dedicated")
    assert all("serviceRole" not in each.inputs for each in linked.of("ComputeEnvironment"))
    roles = [each.inputs["serviceRole"] for each in dedicated.of("ComputeEnvironment")]
    assert roles == ["arn:of:Role:rl-batch-dev-batch"] * 2
    assert dedicated.one("RolePolicyAttachment", "dev-batch").inputs["policyArn"] == f"{MANAGED}/AWSBatchServiceRole"


def test_a_queue_cancels_only_what_can_never_start(deploy: Deploy) -> None:
    actions = deploy().one("JobQueue", "c5a-large").inputs["jobStateTimeLimitActions"]
    assert [(each["reason"], each["action"], each["state"], each["maxTimeSeconds"]) for each in actions] == [
        ("MISCONFIGURATION:COMPUTE_ENVIRONMENT_MAX_RESOURCE", "CANCEL", "RUNNABLE", 600),
        ("MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT", "CANCEL", "RUNNABLE", 600),
    ]


def test_switching_the_time_limits_off_sends_an_empty_list(deploy: Deploy) -> None:
    """AWS keeps what an update does not name."""
    for each in deploy(jobStateTimeLimitActions={}).of("JobQueue"):
        assert each.inputs["jobStateTimeLimitActions"] == []


def test_waiting_for_capacity_is_limited_only_when_asked_for(deploy: Deploy) -> None:
    deployment = deploy(jobStateTimeLimitActions={"CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY": 7200})
    (action,) = deployment.one("JobQueue", "c5a-large").inputs["jobStateTimeLimitActions"]
    assert (action["reason"], action["maxTimeSeconds"]) == ("CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY", 7200)


def test_fair_share_queues_have_the_stacks_policy_and_the_contract_says_so(deploy: Deploy) -> None:
    deployment = deploy(fairShare=True)
    (policy,) = deployment.of("SchedulingPolicy")
    for each in deployment.of("JobQueue"):
        assert each.inputs["schedulingPolicyArn"] == f"arn:of:SchedulingPolicy:{policy.name}"
    assert all(queue.fair_share for queue in from_outputs(deployment.outputs).queues.values())
    assert deploy().of("SchedulingPolicy") == []


def test_a_queue_that_changes_how_it_shares_is_made_anew_and_its_namesake_goes_first(deploy: Deploy) -> None:
    """AWS neither gives a queue a scheduling policy nor takes it away, and queues have fixed names."""
    for each in deploy().of("JobQueue"):
        assert each.replace_on_changes == ["schedulingPolicyArn"]
        assert each.delete_before_replace


def test_environments_of_queues_that_exist_are_guarded_and_new_ones_cost_no_look(deploy: Deploy, fake_aws: Any) -> None:
    fake_aws.deployed = {"queues": {"c5a-large": {"fair_share": False}}}
    deployment = deploy()
    guarded = {each.name: each.hooks for each in deployment.of("ComputeEnvironment")}
    assert guarded == {
        "rl-batch-dev-c5a-large": {"before_create": ["runs-on-c5a-large"], "before_update": ["runs-on-c5a-large"]},
        "rl-batch-dev-c5a-large-spot": {},
    }
    assert deployment.one("LaunchTemplate", "-host").hooks == {"before_update": ["runs-on-hosts"]}
    unguarded = deploy(allowInterruption=True)
    assert not any(each.hooks for each in unguarded.of("ComputeEnvironment"))


def test_a_bucket_outlives_the_stack_together_with_what_protects_it(deploy: Deploy) -> None:
    kept, gone = deploy(artifactsBucket=True), deploy(artifactsBucket=True, artifactsForceDestroy=True)
    parts = [each for each in kept.resources if ":s3/" in each.type]
    assert len(parts) == 5
    assert all(each.retained for each in parts)
    assert kept.one("Bucket", "").inputs["forceDestroy"] is False
    assert not any(each.retained for each in gone.resources)
    assert gone.one("Bucket", "").inputs["forceDestroy"] is True


def test_a_bucket_is_private_and_encrypted_and_its_rules_delete_no_file(deploy: Deploy) -> None:
    deployment = deploy(artifactsBucket=True)
    assert {name for name, value in deployment.one("BucketPublicAccessBlock", "").inputs.items() if value is True} == {
        "blockPublicAcls",
        "blockPublicPolicy",
        "ignorePublicAcls",
        "restrictPublicBuckets",
    }
    (rule,) = deployment.one("BucketServerSideEncryptionConfiguration", "").inputs["rules"]
    assert rule == {"applyServerSideEncryptionByDefault": {"sseAlgorithm": "AES256"}}
    rules = deployment.one("BucketLifecycleConfiguration", "").inputs["rules"]
    assert [sorted(each.keys() - {"id", "status", "filter"}) for each in rules] == [
        ["transitions"],
        ["abortIncompleteMultipartUpload"],
    ]


def test_a_repository_scans_what_is_pushed_and_keeps_what_has_a_tag(deploy: Deploy) -> None:
    deployment = deploy(imageRepository=True)
    repository = deployment.one("Repository", "").inputs
    assert repository["imageScanningConfiguration"] == {"scanOnPush": True}
    assert repository["forceDelete"] is True
    (rule,) = deployment.document("LifecyclePolicy", "")["rules"]
    assert rule["selection"]["tagStatus"] == "untagged"


def test_bucket_and_repository_are_in_the_contract_only_if_asked_for(deploy: Deploy) -> None:
    with_both = from_outputs(deploy(artifactsBucket=True, imageRepository=True).outputs)
    assert with_both.artifacts_bucket == "rl-batch-dev-artifacts-1234567"
    assert with_both.image_repository == "of:rl-batch-dev-images"
    without = deploy()
    assert without.outputs["artifacts_bucket"] is without.outputs["image_repository"] is None
    assert not [each for each in without.resources if each.type.startswith(("aws:s3", "aws:ecr"))]


def test_sessions_on_hosts_are_allowed_only_when_asked_for(deploy: Deploy) -> None:
    attachment = deploy(ssmAccess=True).one("RolePolicyAttachment", "-instance-ssm")
    assert attachment.inputs["policyArn"] == "arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore"
    assert not [each for each in deploy().of("RolePolicyAttachment") if each.name.endswith("-ssm")]


@pytest.mark.parametrize(
    "config", [{"rootVolumeGib": 80}, {"ssmAccess": True}, {"amiId": "ami-0123456789abcdef0"}, {"fairShare": True}]
)
def test_the_launch_template_is_there_whatever_is_configured(deploy: Deploy, config: dict[str, Any]) -> None:
    """An environment that gains or loses its launch template is replaced."""
    deployment = deploy(**config)
    (template,) = deployment.of("LaunchTemplate")
    for each in deployment.of("ComputeEnvironment"):
        assert each.inputs["computeResources"]["launchTemplate"]["launchTemplateId"] == f"{template.name}-id"
        assert "version" in each.inputs["computeResources"]["launchTemplate"]


A, B = "subnet-0000000000000000a", "subnet-0000000000000000b"
GROUP = "sg-0123456789abcdef0"


@pytest.fixture
def own_network(fake_aws: Any) -> Any:
    """An account without a default VPC, and with a VPC of its own."""
    fake_aws.vpcs = []
    fake_aws.own_subnets = {A: ("us-east-1a", "vpc-own"), B: ("us-east-1b", "vpc-own")}
    fake_aws.security_groups = {GROUP: "vpc-own", "sg-aaaaaaaa": "vpc-other"}
    return fake_aws


@pytest.mark.usefixtures("own_network")
def test_hosts_can_be_in_subnets_of_ones_own(deploy: Deploy) -> None:
    deployment = deploy(subnetIds=[B, A], instanceTypes=["c5a.large", "g4dn.xlarge"])
    assert environment(deployment, "c5a-large")["subnets"] == [A, B]
    assert environment(deployment, "g4dn-xlarge")["subnets"] == [B]
    assert deployment.one("SecurityGroup", "-hosts").inputs["vpcId"] == "vpc-own"


@pytest.mark.usefixtures("own_network")
def test_hosts_can_be_behind_security_groups_of_ones_own(deploy: Deploy) -> None:
    deployment = deploy(subnetIds=[A, B], securityGroupIds=[GROUP])
    assert deployment.of("SecurityGroup") == []
    assert environment(deployment, "c5a-large")["securityGroupIds"] == [GROUP]


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({}, "has no default VPC in this account; make one with .*, set subnetIds to subnets of another VPC"),
        ({"subnetIds": ["subnet-00000000"]}, "us-east-1 has no subnet-00000000 in this account; correct the ids"),
        ({"subnetIds": [A, "subnet-cccccccc"]}, "are of different VPCs; name subnets of one VPC"),
        ({"subnetIds": [A], "instanceTypes": ["g4dn.xlarge"]}, "is offered in us-east-1b only, where none of the sub"),
        ({"subnetIds": [A, B], "securityGroupIds": ["sg-aaaaaaaa"]}, "vpc-own has no sg-aaaaaaaa; name security"),
    ],
)
def test_a_network_of_ones_own_that_cannot_work_is_refused_before_anything_exists(
    deploy: Deploy, own_network: Any, config: dict[str, Any], said: str
) -> None:
    own_network.own_subnets["subnet-cccccccc"] = ("us-east-1c", "vpc-other")
    with pytest.raises(pulumi.RunError, match=said) as refused:
        deploy(**config)
    assert own_network.registered == []
    assert "\n" not in str(refused.value)


def test_only_queues_have_fixed_names(deploy: Deploy) -> None:
    """A fixed name cannot exist twice: not in two stacks of an account, not while a replacement is made."""
    named = {each.type.rpartition(":")[2] for each in deploy().resources if "name" in each.inputs}
    assert named == {"JobQueue"}


@pytest.mark.parametrize("stack", ["dev", "prod", "my.stack", "s" * 90])
def test_the_stack_is_in_the_name_of_every_role_and_the_name_fits(deploy: Deploy, stack: str) -> None:
    """IAM is global in an account; Pulumi adds eight characters to a logical name."""
    config = {"serviceRole": "dedicated", "spotAllocationStrategy": "BEST_FIT"}
    deployment = deploy(stack=stack, **config)
    for each in [*deployment.of("Role"), *deployment.of("ComputeEnvironment")]:
        assert each.name.startswith(f"rl-batch-{stack.replace('.', '-')}"[:33])
        assert len(each.name) + 8 <= 64
        assert "." not in each.name


def test_hosts_are_tagged_with_project_and_stack_and_all_else_with_the_users_tags_too(deploy: Deploy) -> None:
    """AWS replaces hosts whose tags change."""
    own = {"project": "rl-batch", "stack": "dev"}
    deployment = deploy(tags={"team": "rl"})
    untagged = {"RolePolicyAttachment", "RolePolicy"}
    for each in deployment.resources:
        if each.type.startswith("aws:") and each.type.rpartition(":")[2] not in untagged:
            assert each.inputs["tags"] == own | {"team": "rl"}, each.urn
    assert environment(deployment, "c5a-large")["tags"] == own


def test_what_is_stored_goes_with_the_stack_and_costs_by_use(deploy: Deploy) -> None:
    deployment = deploy(logRetentionDays=30)
    table = deployment.one("Table", "-ledger").inputs
    assert (table["billingMode"], table["hashKey"], table["rangeKey"]) == ("PAY_PER_REQUEST", "sweep", "n")
    assert table["attributes"] == [{"name": "sweep", "type": "S"}, {"name": "n", "type": "N"}]
    assert deployment.one("Secret", "-keys").inputs["recoveryWindowInDays"] == 0
    assert deployment.one("LogGroup", "-jobs").inputs["retentionInDays"] == 30


def test_hosts_can_call_out_and_nothing_can_call_in(deploy: Deploy) -> None:
    group = deploy().one("SecurityGroup", "-hosts").inputs
    assert "ingress" not in group
    assert group["egress"] == [{"protocol": "-1", "fromPort": 0, "toPort": 0, "cidrBlocks": ["0.0.0.0/0"]}]
    assert group["vpcId"] == "vpc-1"


def test_the_policies_of_jobs_are_attached_to_the_job_role_by_arn(deploy: Deploy) -> None:
    arns = ["arn:aws:iam::aws:policy/AmazonS3ReadOnlyAccess", "arn:aws:iam::123456789012:policy/lab/data"]
    first, second = deploy(jobPolicyArns=arns), deploy(jobPolicyArns=arns[1:])
    kept = {each.urn: each.inputs["policyArn"] for each in first.of("RolePolicyAttachment") if "-job-" in each.name}
    assert sorted(kept.values()) == sorted(arns)
    (left,) = [each.urn for each in second.of("RolePolicyAttachment") if "-job-" in each.name]
    assert kept[left] == arns[1]


def test_subnets_are_in_zones_that_offer_the_type(deploy: Deploy) -> None:
    deployment = deploy(instanceTypes=["c5a.large", "g4dn.xlarge"])
    assert environment(deployment, "c5a-large")["subnets"] == ["subnet-a", "subnet-b"]
    assert environment(deployment, "g4dn-xlarge")["subnets"] == ["subnet-b"]


def test_aws_is_asked_once_for_all_zones_and_once_for_each_set_of_them(deploy: Deploy, fake_aws: Any) -> None:
    """Each call takes a while, in every preview."""
    deploy(instanceTypes=SIX)
    assert {name: fake_aws.calls.count(name) for name in set(fake_aws.calls)} == {
        "getCallerIdentity": 1,
        "getRegion": 1,
        "getPartition": 1,
        "readStackOutputs": 1,
        "getInstanceTypeOfferings": 1,
        "getVpcs": 1,
        "getSubnets": 2,
        "getInstanceType": 6,
    }


def test_a_configuration_that_is_refused_asks_aws_nothing(deploy: Deploy, fake_aws: Any) -> None:
    with pytest.raises(pulumi.RunError, match="name at least one"):
        deploy(instanceTypes=[])
    assert fake_aws.calls == fake_aws.registered == []


@pytest.mark.parametrize(
    ("config", "account", "said"),
    [
        ({"instanceTypes": ["c5a.larg"]}, {}, "no zone of us-east-1 offers c5a.larg; correct the spelling"),
        ({"instanceTypes": ["c5a.large", "x1.one", "x1.two"]}, {}, "no zone of us-east-1 offers x1.one, x1.two;"),
        ({}, {"vpcs": []}, "us-east-1 has no default VPC in this account; make one with `aws ec2 create-default-vpc"),
        ({}, {"subnets": {}}, "vpc-1 of us-east-1 has no default subnet; make one with `aws ec2 create-default-subnet"),
        (
            {"instanceTypes": ["c5a.large", "g4dn.xlarge"]},
            {"subnets": {"us-east-1a": "subnet-a"}},
            "g4dn.xlarge is offered in us-east-1b only, .* has no default subnet; make one there",
        ),
        (
            {"maxVcpus": 3, "instanceTypes": ["c5a.large", "g4dn.xlarge"]},
            {},
            "one g4dn.xlarge has 4 vCPUs, more than 3",
        ),
        (
            {"amiId": "ami-0123456789abcdef0", "instanceTypes": ["c5a.large", "c6g.medium"]},
            {},
            "one image cannot serve both arm64 and x86_64; put the types",
        ),
    ],
)
def test_what_the_region_cannot_carry_is_refused_before_anything_exists(
    deploy: Deploy, fake_aws: Any, config: dict[str, Any], account: dict[str, Any], said: str
) -> None:
    for name, value in account.items():
        setattr(fake_aws, name, value)
    with pytest.raises(pulumi.RunError, match=said) as refused:
        deploy(**config)
    assert fake_aws.registered == []
    assert "\n" not in str(refused.value)
