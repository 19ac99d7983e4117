import contextvars
import json
import re
from pathlib import Path
from typing import Any

import pulumi
import pytest
import yaml

from infra.config import StackConfig

ROOT = Path(__file__).parents[2]
PROJECT = yaml.safe_load((ROOT / "Pulumi.yaml").read_text())


def load(**config: Any) -> StackConfig:
    """Load the defaults of Pulumi.yaml with these values on top, as the engine hands them to the program."""

    def read() -> StackConfig:
        values = {key: entry["default"] for key, entry in PROJECT["config"].items()} | config
        pulumi.runtime.set_all_config(
            {f"rl-batch:{key}": each if isinstance(each, str) else json.dumps(each) for key, each in values.items()}
        )
        return StackConfig.load(pulumi.Config("rl-batch"))

    return contextvars.copy_context().run(read)


def test_the_defaults_of_the_project_are_a_configuration_that_works() -> None:
    config = load()
    assert config.instance_types == ("c5a.large",)
    assert (config.max_vcpus, config.spot_bid_percentage, config.root_volume_gib) == (2000, 100, 64)
    assert config.ami_id is None
    assert not config.dedicated_service_role


def test_every_key_is_declared_with_type_default_and_description() -> None:
    for key, entry in PROJECT["config"].items():
        assert {"type", "default", "description"} <= entry.keys(), key
        assert (entry["type"] == "array") == ("items" in entry), key


def test_the_dev_stack_has_the_six_types_of_cleanrl() -> None:
    config = yaml.safe_load((ROOT / "Pulumi.dev.yaml").read_text())["config"]
    types = ["g4dn.4xlarge", "g4dn.xlarge", "r5ad.large", "c5a.large", "c6g.medium", "m6gd.medium"]
    assert config == {"aws:region": "us-east-1", "rl-batch:instanceTypes": types}


REFUSALS: list[tuple[dict[str, Any], str]] = [
    ({"instanceTypes": []}, "name at least one"),
    ({"instanceTypes": ["c5a large"]}, "'c5a large' is not an instance type"),
    ({"instanceTypes": ["c5a.large", "c5a.large"]}, "c5a.large is listed more than once"),
    ({"instanceTypes": ["a1.medium"]}, "a1.medium cannot run the Amazon Linux 2023 image of AWS Batch; take c6g"),
    ({"instanceTypes": ["p3.2xlarge"]}, "p3.2xlarge cannot run"),
    ({"instanceTypes": ["p3dn.24xlarge"]}, "p3dn.24xlarge cannot run"),
    ({"instanceTypes": ["g3s.xlarge"]}, "g3s.xlarge cannot run"),
    ({"instanceTypes": ["g5g.xlarge"]}, "set amiId to an image of your own"),
    ({"instanceTypes": [f"c5a.{n}xlarge" for n in range(26)]}, "26 types need 52 queues.*at most 25 types"),
    ({"instanceTypes": ["a-b.c", "a.b-c"]}, "a-b.c and a.b-c would share the queue a-b-c"),
    ({"maxVcpus": 0}, "choose 1 to"),
    ({"spotBidPercentage": 0}, "choose 1 to 100 percent"),
    ({"spotBidPercentage": 101}, "choose 1 to 100 percent"),
    ({"onDemandAllocationStrategy": "SPOT_CAPACITY_OPTIMIZED"}, "one of BEST_FIT, BEST_FIT_PROGRESSIVE"),
    ({"spotAllocationStrategy": "CHEAPEST"}, "'CHEAPEST' is not a choice; choose one of BEST_FIT"),
    ({"serviceRole": "none"}, "choose one of linked, dedicated"),
    ({"queuePrefix": "team.a"}, "'team.a' cannot begin a queue's name"),
    ({"queuePrefix": "alice-"}, "with a letter or digit at both ends"),
    ({"queuePrefix": "a" * 120}, "AWS Batch allows 128; shorten the prefix"),
    ({"amiId": "ubuntu"}, "'ubuntu' is not an image id"),
    ({"subnetIds": ["subnet-1"]}, "'subnet-1' is not a subnet id; write it as subnet-0"),
    ({"subnetIds": ["subnet-0123456789abcdef0"] * 2}, "listed more than once"),
    ({"securityGroupIds": ["default"]}, "'default' is not a security group id; write it as sg-0"),
    ({"jobStateTimeLimitActions": {"SLOW": 600}}, "'SLOW' is not a choice; choose one of CAPACITY:INSUFF"),
    ({"jobStateTimeLimitActions": {"UNDETERMINED": 600}}, "'UNDETERMINED' is not a choice; choose one of CAPACITY:"),
    ({"jobStateTimeLimitActions": {"MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT": 60}}, "choose 600 to 86400 seconds"),
    ({"jobStateTimeLimitActions": {"MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT": "1h"}}, "'1h' is not a number of sec"),
    ({"artifactsForceDestroy": True}, "there is no bucket to destroy; set artifactsBucket to true"),
    ({"rootVolumeGib": 29}, "choose 30 to 16384 GiB"),
    ({"logRetentionDays": 100}, "100 is not a choice; choose one of 0, 1, 3"),
    ({"jobPolicyArns": ["AmazonS3ReadOnlyAccess"]}, "is not the ARN of a managed policy"),
    ({"jobPolicyArns": ["arn:aws:iam::aws:policy/A"] * 2}, "listed more than once"),
    ({"tags": {"cost-center": 7}}, "the value of cost-center is not text; put it in quotes"),
    ({"tags": {"project": "x"}}, "the key project is reserved"),
    ({"tags": {"AWS:x": "x"}}, "the key AWS:x is reserved"),
    ({"tags": {"k": "v" * 257}}, "is too long"),
    ({"tags": {str(n): "" for n in range(49)}}, "keep at most 48"),
]


@pytest.mark.parametrize(
    ("config", "said"), REFUSALS, ids=[f"{next(iter(c))}-{n}" for n, (c, _) in enumerate(REFUSALS)]
)
def test_a_value_that_cannot_work_is_refused_in_one_sentence_with_its_remedy(config: dict[str, Any], said: str) -> None:
    with pytest.raises(pulumi.RunError, match=said) as refused:
        load(**config)
    message = str(refused.value)
    assert message.startswith(f"Configuration {next(iter(config))}: ")
    assert re.fullmatch(r"[^\n]+; [^\n]+\.", message)


def test_a_family_that_amazon_linux_2023_cannot_run_is_taken_with_an_image_of_ones_own() -> None:
    assert load(instanceTypes=["g5g.xlarge"], amiId="ami-0123456789abcdef0").ami_id == "ami-0123456789abcdef0"


def test_the_neighbours_of_refused_families_are_taken() -> None:
    types = ("g4dn.xlarge", "p4d.24xlarge", "g5.xlarge", "u-6tb1.metal")
    assert load(instanceTypes=types).instance_types == types


def test_cleanrls_stack_is_a_configuration_that_works() -> None:
    stack = yaml.safe_load((ROOT / "Pulumi.cleanrl.yaml").read_text())["config"]
    config = load(**{key.removeprefix("rl-batch:"): value for key, value in stack.items()})
    assert (config.on_demand_allocation_strategy, config.spot_allocation_strategy) == ("BEST_FIT", "BEST_FIT")
    assert (config.spot_bid_percentage, config.max_vcpus, config.dedicated_service_role) == (50, 2000, True)


def test_the_a1_medium_that_cleanrls_module_lists_by_default_is_refused_with_its_reason_and_successors() -> None:
    with pytest.raises(pulumi.RunError) as refused:
        load(instanceTypes=["g4dn.xlarge", "a1.medium"])
    assert str(refused.value) == (
        "Configuration instanceTypes: a1.medium cannot run the Amazon Linux 2023 image of AWS Batch; take c6g, c7g or "
        "c8g instead, or set amiId to an image of your own."
    )


def test_the_largest_configuration_that_fits_the_quotas_is_taken() -> None:
    config = load(instanceTypes=[f"c5a.{n}xlarge" for n in range(25)], tags={str(n): "" for n in range(48)})
    assert (len(config.instance_types), len(config.tags)) == (25, 48)
