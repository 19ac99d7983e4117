"""A Spot instance goes half way, and the run goes on from its checkpoint as if nothing had happened."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import boto3
import pytest

from examples import train

WaitUntil = Callable[..., Any]
STEPS = 60_000


@pytest.fixture
def bucket(machine: Any) -> str:
    machine.session.client("s3").create_bucket(Bucket="artifacts")
    return "artifacts"


def objects(machine: Any, bucket: str) -> list[str]:
    return [found["Key"] for found in machine.session.client("s3").list_objects_v2(Bucket=bucket).get("Contents", [])]


def logged(machine: Any, number: int, wait_until: WaitUntil) -> list[str]:
    """What the newest attempt of a run has written."""
    client, stream = machine.session.client("logs"), machine.run_status(number).log_stream
    wait_until(lambda: client.describe_log_streams(logGroupName="/jobs", logStreamNamePrefix=stream)["logStreams"])
    events = client.get_log_events(logGroupName="/jobs", logStreamName=stream, startFromHead=True)["events"]
    return [event["message"] for event in events]


def test_a_reclaimed_run_goes_on_from_its_checkpoint_to_the_same_curve(
    machine: Any, bucket: str, wait_until: WaitUntil, tmp_path: Path
) -> None:
    """The curve to compare with is another job's: numpy's last digits depend on the environment."""
    command = f"python examples/train.py --total-timesteps {STEPS} --checkpoint-every 2000 --output {tmp_path}/"
    whole = machine.order([3], f"{command}whole")
    machine.submit(replace(whole, sweep="ada/whole"))
    wait_until(lambda: list(tmp_path.glob("whole/*.csv")), seconds=120)
    outcome = machine.submit(replace(machine.order([3], f"{command}reclaimed"), artifacts=bucket))
    place = f"ada/first/{outcome.generation.nonce}-1/CartPole-v1-seed3-{STEPS}.checkpoint"
    wait_until(lambda: place in objects(machine, bucket), seconds=120)
    machine.server.control.reclaim(machine.run_status(1).job)
    wait_until(lambda: machine.status().over, seconds=120)
    assert machine.run_status(1).attempts == 2
    resumed = logged(machine, 1, wait_until)[0]
    assert resumed.startswith("resumed: step=")
    assert 2_000 <= int(resumed.rpartition("=")[2]) < STEPS
    curves = [(tmp_path / folder / "CartPole-v1-seed3.csv").read_bytes() for folder in ("whole", "reclaimed")]
    assert curves[0] == curves[1]


def test_each_run_has_a_place_of_its_own_that_a_retry_finds_again(
    make_machine: Callable[[], Any], bucket: str, wait_until: WaitUntil
) -> None:
    machine = make_machine()
    machine.contract = replace(machine.contract, artifacts_bucket=bucket)
    order = replace(machine.order([1, 2], "echo $SUBMITTER_ARTIFACTS; exit {seed}"), artifacts=bucket)
    nonce = machine.submit(order).generation.nonce
    for kind in ("run", "retry"):
        wait_until(lambda: machine.status().over)
        assert machine.ledger.entries("ada/first")[-1].kind == kind
        for number in (1, 2):
            assert logged(machine, number, wait_until) == [f"s3://artifacts/ada/first/{nonce}-{number}"]
        machine.retry()


def test_a_bucket_that_there_is_not_is_one_sentence(
    machine: Any, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(boto3, "client", machine.session.client)
    with pytest.raises(SystemExit, match=r"--checkpoint: .*NoSuchBucket"):
        train.main(["--checkpoint", "s3://nothing/here", "--output", str(tmp_path)])
    assert capsys.readouterr().out == ""
