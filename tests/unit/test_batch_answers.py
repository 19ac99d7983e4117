"""What is known of a job after each way that SubmitJob can go; no request leaves this process."""

import io

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders
from botocore.exceptions import ConnectionClosedError, EndpointConnectionError, ReadTimeoutError

from submitter.batch import Accepted, Answer, Batch, Refused, Throttled, TooLate, Unknown
from submitter.errors import AwsError, ConfigurationError
from submitter.session import Clock

URL = "https://batch.us-east-1.amazonaws.com/v1/submitjob"
DATE = "Mon, 30 Nov 2026 21:00:00 GMT"
NOW = 1_796_072_400.0
REQUEST = {"jobName": "a", "jobQueue": "q", "jobDefinition": "d:1"}


def response(status: int, body: str, **headers: str) -> AWSResponse:
    """A reply as it comes from the network."""
    raw = io.BytesIO(body.encode())
    raw.stream = lambda *_, **__: iter([raw.read()])  # type: ignore[attr-defined] # as urllib3's replies have
    every = {"Date": DATE, "Content-Type": "application/json", **headers}
    return AWSResponse(URL, status, HTTPHeaders.from_dict(every), raw)


def refusal(status: int, code: str) -> AWSResponse:
    return response(status, '{"message": "no"}', **{"x-amzn-ErrorType": code, "x-amzn-RequestId": "request-1"})


def submit(reply: AWSResponse | Exception, *, sign_until: float = NOW) -> Answer:
    """Call SubmitJob on a client whose network gives this reply."""

    def network(**_: object) -> AWSResponse:
        if isinstance(reply, Exception):
            raise reply
        return reply

    session = boto3.Session(aws_access_key_id="key", aws_secret_access_key="key", region_name="us-east-1")
    session.events.register_last("before-send.batch.SubmitJob", network)  # type: ignore[arg-type] # may return a reply
    batch = Batch(session, Clock(now=lambda: NOW, sleep=lambda _: None))
    return batch.submit(REQUEST, sign_until=sign_until)


def test_a_job_that_was_made_is_accepted() -> None:
    assert submit(response(200, '{"jobId": "job-1", "jobName": "a"}')) == Accepted("job-1")


@pytest.mark.parametrize(
    ("status", "code"), [(429, "TooManyRequestsException"), (400, "ThrottlingException"), (429, "Whatever")]
)
def test_a_throttled_call_may_be_sent_again(status: int, code: str) -> None:
    assert submit(refusal(status, code)) == Throttled()


@pytest.mark.parametrize("code", ["ClientException", "AccessDeniedException"])
def test_a_plain_no_is_one_sentence_with_the_call_and_the_code(code: str) -> None:
    answer = submit(refusal(400, code))
    assert isinstance(answer, Refused)
    assert isinstance(answer.error, AwsError)
    assert answer.error.message == f"AWS refused SubmitJob ({code}): no"


def test_expired_credentials_are_a_plain_no() -> None:
    answer = submit(refusal(403, "ExpiredTokenException"))
    assert isinstance(answer, Refused)
    assert isinstance(answer.error, ConfigurationError)


@pytest.mark.parametrize("status", [500, 503])
def test_an_internal_error_leaves_it_open_but_nothing_is_under_way(status: int) -> None:
    assert submit(refusal(status, "ServerException")) == Unknown(NOW)


@pytest.mark.parametrize("status", [502, 504])
def test_an_error_of_a_gateway_says_nothing(status: int) -> None:
    assert submit(refusal(status, "ServerException")) == Unknown(None)


def test_an_internal_error_of_somebody_between_says_nothing() -> None:
    """A proxy gives a date of its own, and what it has passed on may still arrive."""
    reply = refusal(503, "ServerException")
    del reply.headers["x-amzn-RequestId"]
    assert submit(reply) == Unknown(None)


def test_an_internal_error_without_a_date_says_nothing() -> None:
    reply = refusal(500, "ServerException")
    del reply.headers["Date"]
    assert submit(reply) == Unknown(None)


@pytest.mark.parametrize("error", [ConnectionClosedError(endpoint_url=URL), ReadTimeoutError(endpoint_url=URL)])
def test_silence_leaves_it_open(error: Exception) -> None:
    assert submit(error) == Unknown(None)


def test_half_a_reply_leaves_it_open() -> None:
    assert submit(response(200, '{"jobId": "jo')) == Unknown(None)


def test_a_redirect_leaves_it_open() -> None:
    assert submit(response(307, "")) == Unknown(None)


def test_a_request_that_found_no_connection_was_never_sent() -> None:
    assert isinstance(submit(EndpointConnectionError(endpoint_url=URL, error="refused")), Refused)


def test_a_request_without_credentials_was_never_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, "/nonexistent")
    answer = Batch(boto3.Session(region_name="us-east-1")).submit(REQUEST, sign_until=2 * NOW)
    assert isinstance(answer, Refused)
    assert isinstance(answer.error, ConfigurationError)


def test_a_request_with_a_member_of_the_wrong_type_was_never_sent() -> None:
    batch = Batch(boto3.Session(aws_access_key_id="k", aws_secret_access_key="k", region_name="us-east-1"))
    assert isinstance(batch.submit({**REQUEST, "jobName": 1}, sign_until=2 * NOW), Refused)


def test_a_request_that_is_signed_after_the_fence_is_not_sent() -> None:
    assert submit(response(200, '{"jobId": "job-1", "jobName": "a"}'), sign_until=NOW - 1) == TooLate()
