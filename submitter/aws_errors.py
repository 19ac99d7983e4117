"""What an error of boto3 means to the user: one sentence, and what to do."""

from typing import Final

from botocore import exceptions as aws

from submitter.errors import AwsError, ConfigurationError, SubmitterError

THROTTLED: Final = frozenset(
    {"TooManyRequestsException", "ThrottlingException", "Throttling", "RequestLimitExceeded", "RequestThrottled"}
)
"""Codes by which services say that they were called too often."""

_LOG_IN: Final = "Log in again (`aws sso login`, or new keys), then type the same command: nothing is sent twice."
_EXPIRED: Final = frozenset({"ExpiredToken", "ExpiredTokenException", "RequestExpired"})
_BAD_CREDENTIALS: Final = frozenset(
    {"InvalidClientTokenId", "UnrecognizedClientException", "InvalidSignatureException", "SignatureDoesNotMatch"}
)
_DENIED: Final = frozenset({"AccessDenied", "AccessDeniedException", "UnauthorizedOperation"})


def error_code(error: aws.ClientError) -> str:
    """Return AWS's code of an error, or an empty string."""
    return str(error.response.get("Error", {}).get("Code", ""))


def explain(error: Exception) -> SubmitterError | None:
    """Return what to tell the user, or None when the error does not come from boto3."""
    match error:
        case aws.NoCredentialsError() | aws.PartialCredentialsError():
            return ConfigurationError(
                "There are no AWS credentials.", "Run `aws configure` or `aws sso login`, or set AWS_PROFILE."
            )
        case aws.ProfileNotFound():
            return ConfigurationError(f"{error}.", "Set AWS_PROFILE to one that `aws configure list-profiles` shows.")
        case aws.NoRegionError():
            return ConfigurationError("There is no AWS region.", "Set AWS_DEFAULT_REGION.")
        case aws.TokenRetrievalError() | aws.SSOError() | aws.LoginError():
            return ConfigurationError("The AWS login has expired.", _LOG_IN)
        case aws.CredentialRetrievalError() | aws.MetadataRetrievalError() | aws.RefreshWithMFAUnsupportedError():
            return ConfigurationError(f"There are no AWS credentials to be had now: {_on_one_line(error)}", _LOG_IN)
        case aws.ClientError():
            return _explain_refusal(error)
        case aws.HTTPClientError() | aws.ConnectionError():
            return AwsError(
                f"AWS cannot be reached: {_on_one_line(error)}", "Check the network, then type the same command again."
            )
        case aws.BotoCoreError():
            return AwsError(f"The call to AWS failed: {_on_one_line(error)}")
        case _:
            return None


def is_throttling(error: aws.ClientError) -> bool:
    """Tell whether AWS was called too often."""
    return error.response["ResponseMetadata"]["HTTPStatusCode"] == 429 or error_code(error) in THROTTLED


def is_denial(error: aws.ClientError) -> bool:
    """Tell whether the caller may not make the call."""
    return error_code(error) in _DENIED


def passing(error: Exception) -> SubmitterError | None:
    """Return what to tell about an error that may pass while one waits, or None for one that will not.

    No network, a service that is down or asked too often, and credentials that have expired pass.
    """
    match error:
        case aws.ClientError() if is_throttling(error) or error.response["ResponseMetadata"]["HTTPStatusCode"] >= 500:
            return AwsError(f"AWS does not answer {error.operation_name} at present ({error_code(error)}).")
        case aws.HTTPClientError() | aws.ConnectionError():
            return AwsError(f"AWS cannot be reached: {_on_one_line(error)}.")
        case aws.ClientError() if error_code(error) not in _EXPIRED | _BAD_CREDENTIALS:
            return None
        case aws.ProfileNotFound() | aws.NoRegionError():
            return None
    explained = explain(error)
    return explained if isinstance(explained, ConfigurationError) else None


def _on_one_line(error: Exception) -> str:
    """Return an error's words without the line ends of the program that they come from."""
    return " ".join(str(error).split())


def _explain_refusal(error: aws.ClientError) -> SubmitterError:
    code, words = error_code(error), str(error.response.get("Error", {}).get("Message", ""))
    call = f"{error.operation_name} ({code})"
    if code in _EXPIRED:
        return ConfigurationError("The AWS credentials have expired.", _LOG_IN)
    if code in _BAD_CREDENTIALS:
        return ConfigurationError(f"AWS does not accept the credentials: {words}", _LOG_IN)
    if code in _DENIED:
        return AwsError(
            f"AWS refused {call}: {words}",
            "Ask for the policy in the stack's output submitter_policy_arn to be attached to you; `prune` is for "
            "those who deploy the stack.",
        )
    if is_throttling(error):
        return AwsError(
            f"AWS was called too often, and refused {call}: {words}",
            "Wait a minute, then type the same command again: nothing is sent twice.",
        )
    if error.response["ResponseMetadata"]["HTTPStatusCode"] >= 500:
        return AwsError(
            f"AWS failed at {call}: {words}", "Type the same command again after a while: nothing is sent twice."
        )
    if code == "ResourceNotFoundException":
        return AwsError(
            f"AWS has not what {call} is about: {words}",
            "The stack is gone or was made anew: save its outputs again (`pulumi stack output --json`).",
        )
    return AwsError(f"AWS refused {call}: {words}")
