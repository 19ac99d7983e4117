"""Stand-in for Pulumi's AWS plugin, which is a large binary that no package registry has.

It serves the resource types and functions that `infra/` uses, with the property names of `pulumi_aws`, from an AWS
account that is emulated on this machine, and refuses to talk to any other.
"""
