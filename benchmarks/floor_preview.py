"""The least that a program with pulumi_aws can be: it imports what ours imports, and exports one value.

pulumi_aws loads a service when one of its names is first used.
"""

import pulumi
from pulumi_aws import batch, ec2, iam

pulumi.export("imported", [imported.__name__ for imported in (batch.JobQueue, ec2.LaunchTemplate, iam.Role)])
