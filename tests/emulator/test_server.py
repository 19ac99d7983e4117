"""The front door: protocols, signatures, the record of calls, faults, and the control endpoint."""

import datetime
import http.client
import json
import socket
import threading
from collections.abc import Callable
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

import boto3
import pytest
from botocore.exceptions import ClientError, ConnectionClosedError
from moto.backends import get_backend

from emulator.faults import Rule
from emulator.server import EmulatorServer
from emulator.wsgi import HttpServer

Aws = Callable[..., Any]


def ask(
    server: EmulatorServer, method: str, path: str, sent: bytes | None = None, **headers: str
) -> tuple[int, Any, http.client.HTTPMessage]:
    """One plain HTTP request: status, JSON and headers of the reply."""
    connection = http.client.HTTPConnection(urlsplit(server.url).netloc)
    connection.request(method, path, sent, headers)
    reply = connection.getresponse()
    read = json.load(reply)
    connection.close()
    return reply.status, read, reply.headers


def control(server: EmulatorServer, method: str, path: str, sent: Any = None, **headers: str) -> tuple[int, Any]:
    """One request to the control endpoint: status and JSON of the reply."""
    body = None if sent is None else json.dumps(sent).encode()
    headers = {"Content-Type": "application/json", **headers}
    return ask(server, method, f"/_emulator/{path}", body, **headers)[:2]


def test_each_server_begins_with_an_empty_account() -> None:
    for _ in range(2):
        with EmulatorServer() as server:
            assert server.batch.state.queues == {}
            assert not server.account.role_exists(server.account.batch_service_linked_role_arn)
            server.account.ensure_batch_service_linked_role()


def test_only_one_account_is_up_in_a_process(server: EmulatorServer) -> None:
    """moto keeps its state per process, so a second one would share it unseen."""
    with pytest.raises(RuntimeError, match="up in this process already"), EmulatorServer():
        pass
    assert server.account_id == "123456789012"


def test_a_connection_serves_many_requests(server: EmulatorServer) -> None:
    connection = http.client.HTTPConnection(urlsplit(server.url).netloc)
    connection.connect()
    first = connection.sock
    for _ in range(3):
        connection.request("GET", "/_emulator/health")
        assert json.load(connection.getresponse())["status"] == "ok"
    assert connection.sock is first
    connection.close()


def test_an_unsigned_request_is_refused(server: EmulatorServer) -> None:
    status, _, headers = ask(server, "POST", "/v1/describejobqueues", b"{}")
    assert (status, headers["x-amzn-errortype"]) == (403, "MissingAuthenticationToken")


def test_a_request_in_another_name_than_this_machine_s_is_refused(server: EmulatorServer) -> None:
    """A web page could otherwise submit jobs: the signatures of requests are not checked."""
    scope = "AWS4-HMAC-SHA256 Credential=A/20261130/us-east-1/batch/aws4_request, SignedHeaders=host, Signature=0"
    port = server.url.rpartition(":")[2]
    for host, expected in (("evil.example", 403), ("127.0.0.1", 200), ("localhost", 200)):
        headers = {"Authorization": scope, "Host": f"{host}:{port}"}
        assert ask(server, "POST", "/v1/describejobqueues", b"{}", **headers)[0] == expected


def test_replies_are_dated_by_the_account_s_clock(server: EmulatorServer, aws: Aws) -> None:
    server.control.advance(86_400)
    for call in (aws("batch").describe_job_queues, aws("dynamodb").list_tables):
        date = parsedate_to_datetime(call()["ResponseMetadata"]["HTTPHeaders"]["date"])
        assert abs(date.timestamp() - server.clock.now()) < 60


def test_a_signature_that_grows_old_on_the_way_is_refused_without_acting(
    server: EmulatorServer, aws: Aws, wait_until: Callable[..., Any]
) -> None:
    """AWS refuses signatures older than five minutes: what a client may conclude from a request that never arrived."""
    server.control.faults.add(Rule(service="batch", operation="CreateSchedulingPolicy", kind="late", seconds=301))
    with pytest.raises(ConnectionClosedError):
        aws("batch").create_scheduling_policy(name="late")
    server.control.advance(301)
    (refused,) = wait_until(lambda: server.record.calls("batch", "CreateSchedulingPolicy"))
    assert refused.status == 403
    assert aws("batch").list_scheduling_policies()["schedulingPolicies"] == []


def test_a_request_that_is_late_but_young_enough_acts(
    server: EmulatorServer, aws: Aws, wait_until: Callable[..., Any]
) -> None:
    server.control.faults.add(
        Rule(service="batch", operation="CreateSchedulingPolicy", kind="late", seconds=200, count=1)
    )
    with pytest.raises(ConnectionClosedError):
        aws("batch").create_scheduling_policy(name="late")
    assert aws("batch").list_scheduling_policies()["schedulingPolicies"] == []
    server.control.advance(200)
    wait_until(lambda: aws("batch").list_scheduling_policies()["schedulingPolicies"])


def test_a_wrong_client_clock_is_refused(server: EmulatorServer, aws: Aws, monkeypatch: pytest.MonkeyPatch) -> None:
    past = datetime.datetime.now(datetime.UTC) - datetime.timedelta(minutes=6)
    monkeypatch.setattr("botocore.auth.get_current_datetime", lambda **_: past.replace(tzinfo=None))
    for call in (aws("batch").describe_job_queues, aws("dynamodb").list_tables):
        with pytest.raises(ClientError, match="Signature expired") as caught:
            call()
        assert caught.value.response["Error"]["Code"] == "InvalidSignatureException"
    assert server.record.calls()[0].status == 403


def test_a_reply_can_be_lost_after_acting(server: EmulatorServer, aws: Aws) -> None:
    server.control.faults.add(Rule(service="batch", operation="CreateSchedulingPolicy", kind="drop", count=1))
    with pytest.raises(ConnectionClosedError):
        aws("batch").create_scheduling_policy(name="lost")
    assert len(aws("batch").list_scheduling_policies()["schedulingPolicies"]) == 1


def test_a_service_can_fail_before_and_after_acting(server: EmulatorServer, aws: Aws) -> None:
    batch = aws("batch")
    for kind, left in (("error", 0), ("error-after", 1)):
        server.control.faults.add(Rule(service="batch", operation="CreateSchedulingPolicy", kind=kind, count=1))  # type: ignore[arg-type]  # the loop's names are kinds
        with pytest.raises(ClientError) as caught:
            batch.create_scheduling_policy(name="p")
        assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 500
        assert len(batch.list_scheduling_policies()["schedulingPolicies"]) == left


def test_each_service_is_throttled_in_its_own_words(
    server: EmulatorServer, aws: Aws, subtests: pytest.Subtests
) -> None:
    for service, operation, code, status in (
        ("batch", "describe_job_queues", "TooManyRequestsException", 429),
        ("dynamodb", "list_tables", "ThrottlingException", 400),
        ("ec2", "describe_vpcs", "RequestLimitExceeded", 503),
        ("iam", "list_roles", "Throttling", 400),
        ("logs", "describe_log_groups", "ThrottlingException", 400),
    ):
        with subtests.test(service):
            server.control.faults.add(Rule(service=service, operation="*", kind="throttle", count=1))
            with pytest.raises(ClientError) as caught:
                getattr(aws(service), operation)()
            response = caught.value.response
            assert (response["Error"]["Code"], response["ResponseMetadata"]["HTTPStatusCode"]) == (code, status)
            getattr(aws(service), operation)()


def test_botocore_retries_a_throttled_call_by_itself(server: EmulatorServer, aws: Aws) -> None:
    server.control.faults.add(Rule(service="batch", operation="*", kind="throttle", count=1))
    aws("batch", retries={"mode": "standard", "total_max_attempts": 2}).describe_job_queues()
    assert [call.status for call in server.record.calls("batch")] == [429, 200]


def test_a_delayed_call_acts_when_its_time_has_come(server: EmulatorServer, aws: Aws) -> None:
    server.control.faults.add(Rule(service="batch", operation="*", kind="delay", seconds=100, count=1))
    batch = aws("batch")
    caller = threading.Thread(target=lambda: batch.create_scheduling_policy(name="slow"))
    caller.start()
    while caller.is_alive():
        server.control.advance(100)
        caller.join(0.05)
    assert len(batch.list_scheduling_policies()["schedulingPolicies"]) == 1


def test_a_stalled_call_has_acted_and_is_answered_when_its_time_has_come(
    server: EmulatorServer, aws: Aws, wait_until: Callable[..., Any]
) -> None:
    rule = Rule(service="*", operation="*", kind="stall", changing=True, skip=1, count=1, seconds=3600)
    server.control.faults.add(rule)
    aws("logs").create_log_group(logGroupName="one")
    answers: list[Any] = []
    late = threading.Thread(target=lambda: answers.append(aws("logs").create_log_group(logGroupName="two")))
    late.start()
    wait_until(lambda: [call.resource for call in server.control.record.calls()] == ["one", "two"])
    assert len(aws("logs").describe_log_groups()["logGroups"]) == 2
    assert not answers
    server.control.advance(3600)
    late.join(timeout=20)
    assert answers


def test_a_service_can_refuse_in_any_words(server: EmulatorServer, aws: Aws) -> None:
    words = {"code": "ClientException", "message": "Cannot delete, found existing JobQueue relationship"}
    server.control.faults.add(
        Rule(service="batch", operation="DeleteComputeEnvironment", kind="refuse", count=2, **words)  # type: ignore[arg-type]  # all of them are text
    )
    for _ in range(2):
        with pytest.raises(ClientError, match="found existing JobQueue relationship"):
            aws("batch").delete_compute_environment(computeEnvironment="a")
    aws("batch").delete_compute_environment(computeEnvironment="a")


def test_what_batch_does_not_know_of_a_request_is_ignored_and_the_wrong_type_refused(server: EmulatorServer) -> None:
    scope = "AWS4-HMAC-SHA256 Credential=A/20261130/us-east-1/batch/aws4_request, SignedHeaders=host, Signature=0"

    def post(body: bytes) -> tuple[int, Any, str | None]:
        status, read, headers = ask(server, "POST", "/v1/describejobqueues", body, Authorization=scope)
        return status, read.get("message"), headers["x-amzn-errortype"]

    assert post(b'{"newerMember": 1, "maxResults": null}') == (200, None, None)
    for body, message in (
        (b'{"maxResults": "7"}', "maxResults is not of type integer."),
        (b'{"maxResults": true}', "maxResults is not of type integer."),
        (b"[]", "The request body is not a JSON object."),
        (b"{", "The request body is not JSON."),
    ):
        assert post(body) == (400, message, "SerializationException")


def test_a_conditional_put_is_atomic_among_many_clients(aws: Aws) -> None:
    table = aws("dynamodb")
    key = {"AttributeName": "id", "AttributeType": "S"}
    table.create_table(
        TableName="ledger",
        AttributeDefinitions=[key],
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        BillingMode="PAY_PER_REQUEST",
    )
    winners: list[int] = []

    def put(number: int) -> None:
        for item in range(10):
            try:
                table.put_item(
                    TableName="ledger",
                    Item={"id": {"S": str(item)}, "by": {"N": str(number)}},
                    ConditionExpression="attribute_not_exists(id)",
                )
                winners.append(item)
            except table.exceptions.ConditionalCheckFailedException:
                pass

    clients = [threading.Thread(target=put, args=(number,)) for number in range(8)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    assert sorted(winners) == list(range(10))


def test_a_request_that_goes_through_logs_is_not_disturbed_by_jobs_that_write_some(server: EmulatorServer) -> None:
    """Requests are served by threads, jobs by the loop; a mapping that grows meanwhile would end the request."""
    logs = get_backend("logs")[server.account_id][server.region]
    server.loop.call(server.account.create_log_group, "one")
    server.loop.call(server.account.put_log_events, "one", "first", [])
    groups, streams = iter(logs.groups.items()), iter(logs.groups["one"].streams.items())
    server.loop.call(server.account.create_log_group, "two")
    server.loop.call(server.account.put_log_events, "one", "second", [(0, "word")])
    assert ([name for name, _ in groups], [name for name, _ in streams]) == (["one"], ["first"])
    assert (list(logs.groups), list(logs.groups["one"].streams)) == (["one", "two"], ["first", "second"])


def test_the_record_names_calls_and_holds_no_secret(server: EmulatorServer, aws: Aws) -> None:
    aws("secretsmanager").create_secret(Name="keys", SecretString="sesame")
    aws("iam").list_roles()
    _, found = control(server, "GET", "requests")
    assert [(call["service"], call["operation"], call["resource"]) for call in found["requests"]] == [
        ("secretsmanager", "CreateSecret", "keys"),
        ("iam", "ListRoles", ""),
    ]
    assert "sesame" not in json.dumps(found)
    assert control(server, "GET", "requests?service=iam")[1]["requests"] == found["requests"][1:]
    control(server, "DELETE", "requests")
    assert control(server, "GET", "requests") == (200, {"requests": []})


def test_faults_and_the_clock_are_set_over_http(server: EmulatorServer, aws: Aws) -> None:
    control(server, "POST", "faults", {"service": "batch", "operation": "*", "kind": "throttle"})
    with pytest.raises(ClientError, match="Rate exceeded"):
        aws("batch").describe_job_queues()
    assert [rule["kind"] for rule in control(server, "GET", "faults")[1]["faults"]] == ["throttle"]
    control(server, "DELETE", "faults")
    aws("batch").describe_job_queues()
    before = control(server, "GET", "clock")[1]["now"]
    assert control(server, "POST", "clock", {"advance": 3600})[1]["now"] >= before + 3600
    assert control(server, "POST", "summaries", {"delay": 60}) == (200, {})
    assert server.batch.jobs.summary_delay_seconds == 60


CONTROLS: list[tuple[str, str, Any, dict[str, str], int]] = [
    ("GET", "health", None, {"Host": "evil.example:80"}, 403),
    ("POST", "clock", {"advance": 1}, {"Content-Type": "text/plain"}, 403),
    ("POST", "clock", {"advance": -1}, {}, 400),
    ("POST", "faults", {"service": "batch", "operation": "*", "kind": "explode"}, {}, 400),
    ("POST", "faults", {"nonsense": 1}, {}, 400),
    ("POST", "reclaim", {"target": "i-0"}, {}, 400),
    ("POST", "iam", {}, {}, 400),
    ("POST", "summaries", {}, {}, 400),
    ("GET", "nothing", None, {}, 404),
]


def test_the_control_endpoint_refuses_web_pages_and_nonsense(server: EmulatorServer, subtests: pytest.Subtests) -> None:
    for method, path, sent, headers, status in CONTROLS:
        with subtests.test(path, sent=sent):
            assert control(server, method, path, sent, **headers)[0] == status


def test_a_connection_that_its_thread_closes_meanwhile_does_not_disturb_the_end() -> None:
    serving = HttpServer(0, lambda _environ, _start_response: [])
    stop = serving.start()
    closed = socket.socket()
    closed.close()
    serving.connections.add(closed)
    stop()


def test_an_account_knows_nothing_of_what_was_attached_in_the_one_before(boto3_session: boto3.Session) -> None:
    """AWS's managed policies are read once for all accounts of a process."""
    policy = "arn:aws:iam::aws:policy/service-role/AmazonEC2ContainerServiceforEC2Role"
    allow = {"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}
    counts = []
    for _ in range(2):
        with EmulatorServer(cores=1) as server:
            iam = boto3_session.client("iam", endpoint_url=server.url)
            iam.create_role(
                RoleName="hosts", AssumeRolePolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [allow]})
            )
            iam.attach_role_policy(RoleName="hosts", PolicyArn=policy)
            counts.append(iam.get_policy(PolicyArn=policy)["Policy"]["AttachmentCount"])
            iam.close()
    assert counts == [1, 1]
