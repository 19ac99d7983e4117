"""What a command costs before it does anything."""

import subprocess
import sys

import pytest

HEAVY = {"boto3", "botocore", "docker", "pulumi", "pulumi_aws", "wandb", "grpc"}


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"], ["status", "--help"], ["prune", "--help"]])
def test_help_loads_no_heavy_library(arguments: list[str]) -> None:
    """Each would cost every command a good part of a second, also those that need none of them."""
    script = (
        "import sys\n"
        "from submitter.__main__ import main\n"
        f"sys.argv = ['submitter', *{arguments}]\n"
        "try:\n    main()\n"
        "except SystemExit as end:\n    assert not end.code, end.code\n"
        "print('loaded', *{name.split('.')[0] for name in sys.modules})\n"
    )
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert done.stdout.startswith("Usage:")
    last = done.stdout.splitlines()[-1].split()
    assert last[0] == "loaded"
    assert HEAVY.isdisjoint(last)
