"""The least that a program with pulumi_aws can be: it imports what ours imports, and exports one value."""

import pulumi
from pulumi_aws import batch, ec2, iam

pulumi.export("services", [service.__name__ for service in (batch, ec2, iam)])
