"""Finds what a `pulumi up` that was killed has left in the account: `python -m infra.recover [--stack NAME]`.

The engine writes down what it is about to create, with its name, before it asks AWS for it. Killed then, it never
learns the id, the next update makes the resource again under another name, and the first one is nobody's. Here what
was begun is found by its name and put into the stack's state; `pulumi refresh` then takes out what does not exist, so
that it always follows, also if it failed the last time.
The refresh's own way, `--import-pending-creates`, drops the resource instead (seen in Pulumi 3.274.1).
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NoReturn

State = dict[str, Any]
"""The deployment in a stack's exported state."""

# How the provider makes the id of each type that this program uses, from inputs and from where the stack lives; the id
# is what `pulumi import` takes (Pulumi Registry, AWS, "Import" of each resource).
IDS: Final[Mapping[str, str]] = {
    "aws:batch/computeEnvironment:ComputeEnvironment": "{name}",
    "aws:batch/jobQueue:JobQueue": "arn:{partition}:batch:{region}:{account}:job-queue/{name}",
    "aws:batch/schedulingPolicy:SchedulingPolicy": "arn:{partition}:batch:{region}:{account}:scheduling-policy/{name}",
    "aws:cloudwatch/logGroup:LogGroup": "{name}",
    "aws:dynamodb/table:Table": "{name}",
    "aws:ecr/lifecyclePolicy:LifecyclePolicy": "{repository}",
    "aws:ecr/repository:Repository": "{name}",
    "aws:iam/instanceProfile:InstanceProfile": "{name}",
    "aws:iam/policy:Policy": "arn:{partition}:iam::{account}:policy/{name}",
    "aws:iam/role:Role": "{name}",
    "aws:iam/rolePolicy:RolePolicy": "{role}:{name}",
    "aws:iam/rolePolicyAttachment:RolePolicyAttachment": "{role}/{policyArn}",
    "aws:s3/bucket:Bucket": "{bucket}",
    "aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration": "{bucket}",
    "aws:s3/bucketPolicy:BucketPolicy": "{bucket}",
    "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock": "{bucket}",
    "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration": "{bucket}",
}


class Names:
    """Finds the ids of resources by their names.

    Args:
        session: A boto3 session of the stack's account and region.

    Attributes:
        place: Where it looks: `account`, `partition` and `region`.
    """

    def __init__(self, session: Any) -> None:
        self._session = session
        caller = session.client("sts").get_caller_identity()
        partition = caller["Arn"].split(":")[1]
        self.place = {"account": caller["Account"], "partition": partition, "region": session.region_name}

    def id_of(self, kind: str, inputs: Mapping[str, Any]) -> str | None:
        """Return the id that a resource of these inputs has if it exists, or None if it does not.

        Raises:
            KeyError: The type is none of this program's.
        """
        look_up = LOOK_UPS.get(kind)
        return look_up(self._session, inputs["name"]) if look_up else IDS[kind].format_map({**inputs, **self.place})


def _launch_template(session: Any, name: str) -> str | None:
    named = [{"Name": "launch-template-name", "Values": [name]}]
    found = session.client("ec2").describe_launch_templates(Filters=named)["LaunchTemplates"]
    return found[0]["LaunchTemplateId"] if found else None


def _security_group(session: Any, name: str) -> str | None:
    found = session.client("ec2").describe_security_groups(Filters=[{"Name": "group-name", "Values": [name]}])
    return found["SecurityGroups"][0]["GroupId"] if found["SecurityGroups"] else None


def _secret(session: Any, name: str) -> str | None:
    secrets = session.client("secretsmanager")
    try:
        return str(secrets.describe_secret(SecretId=name)["ARN"])
    except secrets.exceptions.ResourceNotFoundException:
        return None


LOOK_UPS: Final[Mapping[str, Callable[[Any, str], str | None]]] = {
    "aws:ec2/launchTemplate:LaunchTemplate": _launch_template,
    "aws:ec2/securityGroup:SecurityGroup": _security_group,
    "aws:secretsmanager/secret:Secret": _secret,
}
"""How to find the types whose ids AWS draws."""


def elsewhere(deployment: State, place: Mapping[str, str]) -> str | None:
    """Return what in a state is of another account or region, in one sentence, if anything is."""
    for resource in deployment.get("resources", ()):
        parts = str(resource.get("outputs", {}).get("arn", "")).split(":")
        for key, its in zip(("region", "account"), parts[3:5], strict=False):  # IAM has no region, S3 has neither
            if its and its != place[key]:
                return f"{resource['urn']} is of {key} {its}, and the AWS credentials of this shell of {place[key]}."
    return None


def repaired(deployment: State, id_of: Callable[[str, Mapping[str, Any]], str | None]) -> State:
    """Return a state in which what was being created is there, as far as it has an id, and nothing is pending.

    Raises:
        KeyError: Something was being created of a type that `id_of` does not know.
    """
    resources = list(deployment["resources"])
    for operation in deployment.get("pending_operations", ()):
        begun = operation["resource"]
        if operation["type"] != "creating" or not begun["type"].startswith("aws:"):
            continue  # the engine itself copes with all else: it makes components and providers again
        if found := id_of(begun["type"], begun["inputs"]):
            _adopt(resources, {**begun, "id": found})
    return {**deployment, "resources": resources, "pending_operations": []}


def _adopt(resources: list[State], found: State) -> None:
    """Put a resource into the state; one that is to replace another is to be deleted, since nothing uses it yet."""
    for index, other in enumerate(resources):
        if other["urn"] == found["urn"] and not other.get("delete"):
            if other.get("pendingReplacement"):  # deleted already, to make room
                resources[index] = found
            elif other["id"] != found["id"]:
                resources.append({**found, "delete": True})
            return
    resources.append(found)


def main() -> None:
    """Repair the state of the stack in this folder's project; ends the process with 1 if that is impossible."""
    parser = argparse.ArgumentParser(prog="python -m infra.recover", description=__doc__.partition("\n")[0])
    parser.add_argument("--stack", help="the stack; the selected one if not given")
    stack = parser.parse_args().stack
    of_stack = ["--stack", stack] if stack else []
    exported = json.loads(text := _pulumi("stack", "export", *of_stack))
    if pending := exported["deployment"].get("pending_operations") or []:
        names = Names(_session(of_stack))
        if problem := elsewhere(exported["deployment"], names.place):
            _fail(f"{problem} Nothing was changed.")
        try:
            exported["deployment"] = repaired(exported["deployment"], names.id_of)
        except KeyError as unknown:
            _fail(f"{unknown} is no type of this program; repair the stack with `pulumi refresh` by hand.")
        _say(f"The state as it was is in {_backup(text)}.")
        _pulumi("stack", "import", *of_stack, state=json.dumps(exported))
    else:
        _say("No update of this stack was broken off.")
    _pulumi("refresh", "--yes", "--skip-preview", *of_stack)
    kept = {each["urn"] for each in json.loads(_pulumi("stack", "export", *of_stack))["deployment"]["resources"]}
    for operation in pending:
        urn = operation["resource"]["urn"]
        _say(f"{urn.rpartition('::')[2]} ({operation['resource']['type']}): {_outcome(operation, urn in kept)}")
    _say("The state is what the account has. Go on with `pulumi up` or `pulumi destroy`.")


def _outcome(operation: Mapping[str, Any], exists: bool) -> str:
    return f"was {operation['type']}, {'exists' if exists else 'does not exist'}"


def _backup(state: str) -> Path:
    """Write an exported state, whose secrets are encrypted, to a new file in this folder."""
    path = Path(f"state-before-recovery-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.json")
    path.touch(mode=0o600, exist_ok=False)
    path.write_text(state)
    return path.absolute()


def _session(of_stack: list[str]) -> Any:
    """Return a boto3 session of the profile and region that the stack's provider uses."""
    import boto3  # noqa: PLC0415 - not needed where nothing is pending

    config = json.loads(_pulumi("config", "--json", *of_stack))
    chosen = {key: config.get(f"aws:{key}", {}).get("value") for key in ("profile", "region")}
    # boto3 alone does not read AWS_REGION, which the provider does.
    region = chosen["region"] or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    session = boto3.Session(profile_name=chosen["profile"], region_name=region)
    if session.region_name is None:
        _fail("there is no AWS region; say which with `pulumi config set aws:region REGION`.")
    return session


def _pulumi(*arguments: str, state: str | None = None) -> str:
    """Run `pulumi` in this folder and return its standard output; what it says of errors is shown."""
    command = ["pulumi", *arguments, "--non-interactive"]
    try:
        ran = subprocess.run(command, input=state, stdout=subprocess.PIPE, text=True, check=False)
    except FileNotFoundError:
        _fail("there is no `pulumi` on PATH.")
    if ran.returncode:
        _fail(f"`{' '.join(command)}` failed; see above.")
    return ran.stdout


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def _fail(problem: str) -> NoReturn:
    sys.stderr.write(f"error: {problem}\n")
    raise SystemExit(1)


if __name__ == "__main__":
    main()
