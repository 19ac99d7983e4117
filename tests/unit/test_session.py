"""Who is calling."""

import pytest

from submitter.session import name_in


@pytest.mark.parametrize(
    ("resource", "name"),
    [
        ("iam::123456789012:root", "root"),
        ("iam::123456789012:user/ada", "ada"),
        ("iam::123456789012:user/research/rl/ada", "ada"),
        ("sts::123456789012:assumed-role/Research/ada@example.com", "ada@example.com"),
        ("sts::123456789012:assumed-role/Research/i-am-ada", "i-am-ada"),
        ("sts::123456789012:assumed-role/Research/botocore-session-1796072400", "Research"),
        ("sts::123456789012:assumed-role/Research/AWSCLI-Session", "AWSCLI-Session"),
        ("sts::123456789012:assumed-role/Research/AWSCLI-Session-1796072400", "Research"),
        ("sts::123456789012:assumed-role/Research/aws-go-sdk-1796072400000000000", "Research"),
        ("sts::123456789012:assumed-role/Research/aws-sdk-java-1796072400000", "Research"),
        ("sts::123456789012:assumed-role/Workstation/i-0123456789abcdef0", "Workstation"),
    ],
)
def test_the_owner_has_the_same_name_in_every_process(resource: str, name: str) -> None:
    """A name that an SDK makes up for each session would make every command's sweep another one."""
    assert name_in(f"arn:aws:{resource}") == name
