import asyncio
import os
import shlex
import subprocess
from pathlib import Path

import pytest

from emulator.batch.paging import page
from emulator.calls import Call, read_call
from emulator.clock import Clock
from emulator.faults import Rule
from emulator.home import Home, NotUpError, Running, process_start
from emulator.restjson import ApiError
from emulator.signatures import stale

NOON = 1_795_953_600.0  # 2026-11-29T12:00:00Z


def test_a_sleeper_wakes_when_the_clock_is_advanced_past_its_time() -> None:
    clock = Clock()

    async def main() -> None:
        sleeper = asyncio.create_task(clock.sleep(3600))
        await asyncio.sleep(0)
        clock.advance(3599)
        await asyncio.sleep(0)
        assert not sleeper.done()
        clock.advance(1)
        await asyncio.wait_for(sleeper, 5)

    asyncio.run(main())


def test_the_clock_never_goes_back() -> None:
    with pytest.raises(ValueError, match="cannot go back"):
        Clock().advance(-1)


@pytest.mark.parametrize(
    ("signed", "offset", "good"),
    [
        ("20261129T120000Z", 0, True),
        ("20261129T115501Z", 0, True),
        ("20261129T115459Z", 0, False),
        ("20261129T120501Z", 0, False),
        ("20261129T110000Z", 3600, True),
        ("20261129T110000Z", 3000, False),
        ("", 0, True),
    ],
)
def test_a_signature_is_good_for_five_minutes_either_way(signed: str, offset: float, good: bool) -> None:
    """A client's clock is taken to have been advanced with the account's before the request arrived, not after."""
    assert (stale(signed, now=NOON, offset=offset) is None) is good


def test_a_stale_signature_is_explained_in_the_words_of_aws() -> None:
    assert stale("20261129T115459Z", now=NOON, offset=0) == (
        "Signature expired: 20261129T115459Z is now earlier than 20261129T115500Z (20261129T120000Z - 5 min.)"
    )


def _environ(service: str, **more: str) -> dict[str, str]:
    scope = f"AWS4-HMAC-SHA256 Credential=AKIA/20261129/us-east-1/{service}/aws4_request, SignedHeaders=host"
    return {"HTTP_AUTHORIZATION": scope, "REQUEST_METHOD": "POST", "PATH_INFO": "/", **more}


def test_a_call_is_recorded_by_its_names_and_never_by_its_values() -> None:
    body = b'{"SecretId": "keys", "SecretString": "sesame", "ClientRequestToken": "t"}'
    call = read_call(
        _environ("secretsmanager", HTTP_X_AMZ_TARGET="secretsmanager.PutSecretValue"), body, NOON, lambda *_: ""
    )
    assert call is not None
    assert (call.service, call.operation, call.resource) == ("secretsmanager", "PutSecretValue", "keys")
    assert "sesame" not in repr(call)


def test_a_call_of_the_query_protocol_is_named_by_its_action() -> None:
    form = _environ("iam", CONTENT_TYPE="application/x-www-form-urlencoded; charset=utf-8")
    call = read_call(form, b"Action=CreateRole&RoleName=jobs&Version=2010-05-08", NOON, lambda *_: "")
    assert call is not None
    assert (call.service, call.operation, call.resource) == ("iam", "CreateRole", "jobs")


def test_an_unsigned_request_is_no_call() -> None:
    assert read_call({"REQUEST_METHOD": "GET", "PATH_INFO": "/"}, b"", NOON, lambda *_: "") is None


def _hits(rule: Rule, calls: int) -> list[int]:
    call = read_call(_environ("batch"), b"", NOON, lambda *_: "SubmitJob")
    assert call is not None
    return [number for number in range(1, calls + 1) if rule.hits(call)]


def test_a_share_of_the_calls_is_hit_evenly_and_exactly() -> None:
    rule = Rule(service="batch", operation="SubmitJob", kind="throttle", share=0.3)
    assert _hits(rule, 20) == [4, 7, 10, 14, 17, 20]


def test_a_rule_skips_then_counts_and_is_spent() -> None:
    assert _hits(Rule(service="batch", operation="*", kind="drop", skip=2, count=1), 6) == [3]


def test_a_rule_leaves_other_operations_alone() -> None:
    assert _hits(Rule(service="batch", operation="ListJobs", kind="drop"), 3) == []
    assert _hits(Rule(service="logs", operation="*", kind="drop"), 3) == []


def test_a_rule_can_be_about_whatever_changes_something() -> None:
    rule = Rule(service="*", operation="*", kind="stall", skip=1, count=1, changing=True)
    calls = [
        Call("iam", "GetRole", "", NOON),
        Call("s3", "HEAD", "/bucket", NOON),
        Call("iam", "CreateRole", "", NOON),
        Call("batch", "DescribeJobQueues", "", NOON),
        Call("s3", "PUT", "/bucket", NOON),
        Call("batch", "DeleteJobQueue", "", NOON),
    ]
    assert [call.operation for call in calls if rule.hits(call)] == ["PUT"]


def test_a_fault_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="there is no fault"):
        Rule(service="batch", operation="*", kind="explode")  # type: ignore[arg-type]  # that is what is tested


def test_pages_skip_nothing_when_something_is_deleted_in_between() -> None:
    first, more = page(["a", "b", "c", "d"], 2, None)
    rest, end = page(["a", "c", "d"], 2, more["nextToken"])
    assert (first, rest, end) == (["a", "b"], ["c", "d"], {})


def test_a_token_that_is_none_is_refused() -> None:
    with pytest.raises(ApiError, match="nextToken"):
        page(["a"], None, "not a token")


def test_a_process_is_told_from_a_later_one_with_its_id() -> None:
    started = process_start(os.getpid())
    assert started is not None
    assert Running(os.getpid(), started, "", "", "").alive
    assert not Running(os.getpid(), started - 1, "", "", "").alive


def test_no_account_is_up_in_an_empty_folder(tmp_path: Path) -> None:
    with pytest.raises(NotUpError, match="No account is up"):
        Home(tmp_path).environment()


def test_the_environment_leads_to_the_account_and_away_from_the_person_s_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(tmp_path / "it's a folder")
    home.begin()
    started = process_start(os.getpid())
    assert started is not None
    home.record(Running(os.getpid(), started, "http://127.0.0.1:1", "123456789012", "us-east-1"))
    home.remember_cli(tmp_path / "cli")
    monkeypatch.setenv("AWS_PROFILE", "mine")
    monkeypatch.setenv("AWS_ENDPOINT_URL_BATCH", "https://elsewhere")
    monkeypatch.setenv("no_proxy", "intranet")
    environment = home.process_environment()
    assert "AWS_PROFILE" not in environment
    assert "AWS_ENDPOINT_URL_BATCH" not in environment
    assert environment["NO_PROXY"] == "intranet,127.0.0.1"
    assert environment["AWS_ENDPOINT_URL"] == "http://127.0.0.1:1"
    assert environment["PATH"].split(os.pathsep)[0] == str(tmp_path / "cli")


def test_a_folder_with_a_quote_survives_the_command_that_messages_show(tmp_path: Path) -> None:
    home = Home(tmp_path / "it's a folder")
    shown = home.command("env").replace(" -m emulator ", " -c 'import sys; print(sys.argv[-1])' ")
    assert shlex.split(shown)[-1] == str(home.folder)
    printed = subprocess.run(["sh", "-c", shown], check=True, capture_output=True, text=True).stdout
    assert printed.strip() == str(home.folder)


def test_beginning_anew_leaves_nothing_of_the_account_before(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.begin()
    (home.backend / "stack.json").write_text("{}")
    home.log.write_text("the end")
    home.rotate_log()
    home.begin()
    assert not list(home.backend.iterdir())
    assert home.previous_log.read_text() == "the end"
