"""What boto3's errors become."""

import pytest
from botocore import exceptions as aws

from submitter.aws_errors import explain
from submitter.errors import AwsError, ConfigurationError


def refusal(code: str) -> aws.ClientError:
    return aws.ClientError({"Error": {"Code": code, "Message": "AWS's words"}}, "SubmitJob")


@pytest.mark.parametrize(
    "error",
    [
        aws.NoCredentialsError(),
        aws.ProfileNotFound(profile="lab"),
        aws.NoRegionError(),
        refusal("ExpiredTokenException"),
        refusal("UnrecognizedClientException"),
    ],
)
def test_what_is_wrong_with_the_credentials_comes_with_a_remedy(error: Exception) -> None:
    explained = explain(error)
    assert isinstance(explained, ConfigurationError)
    assert explained.remedy


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
