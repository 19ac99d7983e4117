"""What boto3's errors become."""

from typing import Any

import pytest
from botocore import exceptions as aws

from submitter.aws_errors import explain, passing
from submitter.errors import AwsError, ConfigurationError


def refusal(code: str, status: int = 400) -> aws.ClientError:
    metadata: Any = {"HTTPStatusCode": status}
    return aws.ClientError(
        {"Error": {"Code": code, "Message": "AWS's words"}, "ResponseMetadata": metadata}, "SubmitJob"
    )


@pytest.mark.parametrize(
    "error",
    [
        aws.NoCredentialsError(),
        aws.ProfileNotFound(profile="lab"),
        aws.NoRegionError(),
        refusal("ExpiredTokenException"),
        refusal("UnrecognizedClientException"),
        aws.CredentialRetrievalError(provider="custom-process", error_msg="no\nlog-in\n"),
        aws.MetadataRetrievalError(error_msg="timed out"),
        aws.LoginRefreshRequired(),
    ],
)
def test_what_is_wrong_with_the_credentials_comes_with_a_remedy(error: Exception) -> None:
    explained = explain(error)
    assert isinstance(explained, ConfigurationError)
    assert explained.remedy
    assert "\n" not in explained.message


@pytest.mark.parametrize("error", [refusal("ThrottlingException"), refusal("InternalServerError", 500)])
def test_what_may_pass_is_to_be_typed_again(error: Exception) -> None:
    explained = explain(error)
    assert isinstance(explained, AwsError)
    assert "ype the same command again" in str(explained.remedy)


def test_a_refused_call_is_named_with_awss_own_words_and_the_policy_that_allows_it() -> None:
    explained = explain(refusal("AccessDeniedException"))
    assert isinstance(explained, AwsError)
    assert "SubmitJob" in explained.message
    assert "AWS's words" in explained.message
    assert "submitter_policy_arn" in str(explained.remedy)


def test_an_unreachable_aws_is_one_sentence() -> None:
    explained = explain(aws.EndpointConnectionError(endpoint_url="http://127.0.0.1:1"))
    assert isinstance(explained, AwsError)
    assert "cannot be reached" in explained.message


def test_a_bug_of_ours_is_not_explained_away() -> None:
    assert explain(KeyError("x")) is None


@pytest.mark.parametrize(
    "error",
    [
        refusal("TooManyRequestsException", 429),
        refusal("ThrottlingException"),
        refusal("InternalFailure", 500),
        refusal("ExpiredTokenException", 403),
        aws.EndpointConnectionError(endpoint_url="http://127.0.0.1:1"),
        aws.TokenRetrievalError(provider="sso", error_msg="it has expired"),
        aws.CredentialRetrievalError(provider="custom-process", error_msg="no log-in"),
        aws.NoCredentialsError(),
    ],
)
def test_busy_services_lost_networks_and_expired_credentials_pass(error: Exception) -> None:
    assert passing(error)


@pytest.mark.parametrize(
    "error",
    [
        refusal("AccessDeniedException"),
        refusal("ClientException"),
        aws.ProfileNotFound(profile="lab"),
        aws.NoRegionError(),
        ValueError("a bug"),
    ],
)
def test_refusals_and_bugs_do_not_pass(error: Exception) -> None:
    assert passing(error) is None
