"""The translation of each exception of an SDK, and the kinds of codes."""

from __future__ import annotations

import http.client
from typing import Any

import pytest
import urllib3.exceptions
from botocore import exceptions as sdk
from botocore.parsers import ResponseParserError

from auditor.aws.failures import doom, is_gone, is_throttle, is_transient
from auditor.aws.sdk_errors import translate
from auditor.errors import BucketError, CallFailed, CredentialsError, UsageError

URL = "http://127.0.0.1:1"


def client_error(code: str, status: int, **headers: str) -> sdk.ClientError:
    meta = {"HTTPStatusCode": status, "HTTPHeaders": headers}
    response: Any = {"Error": {"Code": code, "Message": "words"}, "ResponseMetadata": meta}
    return sdk.ClientError(response, "GetObjectAcl")


def failed(code: str, status: int = 0, **headers: str) -> CallFailed:
    return CallFailed("GetObjectAcl", code, status, headers=headers)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (sdk.ConnectTimeoutError(endpoint_url=URL), "ConnectionError"),
        (sdk.ReadTimeoutError(endpoint_url=URL), "Timeout"),
        (urllib3.exceptions.ReadTimeoutError(None, URL, "late"), "Timeout"),  # type: ignore[arg-type]
        (TimeoutError(), "Timeout"),
        (sdk.EndpointConnectionError(endpoint_url=URL), "ConnectionError"),
        (sdk.ConnectionClosedError(endpoint_url=URL), "ConnectionError"),
        (sdk.SSLError(endpoint_url=URL, error="x"), "ConnectionError"),
        (sdk.ProxyConnectionError(proxy_url=URL), "ConnectionError"),
        (sdk.HTTPClientError(error="x"), "ConnectionError"),
        (sdk.ResponseStreamingError(error="x"), "ConnectionError"),
        (sdk.IncompleteReadError(actual_bytes=1, expected_bytes=2), "ConnectionError"),
        (urllib3.exceptions.ProtocolError("x", http.client.IncompleteRead(b"")), "ConnectionError"),
        (ConnectionResetError(), "ConnectionError"),
        (ResponseParserError("x"), "BrokenReply"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else str(value),
)
def test_failure_of_one_call_is_tried_again(error: Exception, code: str) -> None:
    failure = translate("GetObjectAcl", error)
    assert isinstance(failure, CallFailed)
    assert (failure.action, failure.code, failure.status) == ("GetObjectAcl", code, 0)
    assert is_transient(failure)


OTHER_ERRORS: list[tuple[Exception, type[Exception]]] = [
    (sdk.NoCredentialsError(), CredentialsError),
    (sdk.PartialCredentialsError(provider="env", cred_var="x"), CredentialsError),
    (sdk.CredentialRetrievalError(provider="x", error_msg="y"), CredentialsError),
    (sdk.TokenRetrievalError(provider="x", error_msg="y"), CredentialsError),
    (sdk.UnauthorizedSSOTokenError(), CredentialsError),
    (sdk.ParamValidationError(report="x"), UsageError),
    (sdk.InvalidRegionError(region_name="x y"), UsageError),
]


def test_missing_credentials_and_wrong_settings_end_the_run() -> None:
    wrong = [error for error, kind in OTHER_ERRORS if not isinstance(translate("GetObjectAcl", error), kind)]
    assert not wrong, wrong


def test_bugs_and_errors_of_ours_stay_what_they_are() -> None:
    for error in (KeyError("x"), AttributeError("x"), failed("AccessDenied", 403), BucketError("x")):
        assert translate("GetObjectAcl", error) is error


def test_answer_of_s3_keeps_code_status_and_headers() -> None:
    failure = translate("GetObjectAcl", client_error("PermanentRedirect", 301, **{"X-Amz-Bucket-Region": "eu-south-1"}))
    assert isinstance(failure, CallFailed)
    assert (failure.code, failure.status, failure.message) == ("PermanentRedirect", 301, "words")
    assert failure.headers == {"x-amz-bucket-region": "eu-south-1"}


@pytest.mark.parametrize(
    ("failure", "throttle", "transient"),
    [
        (failed("SlowDown", 503), True, True),
        (failed("503", 503), True, True),
        (failed("Whatever", 503), True, True),
        (failed("TooManyRequests", 429), True, True),
        (failed("RequestLimitExceeded", 400), True, True),
        (failed("InternalError", 500), False, True),
        (failed("502", 502), False, True),
        (failed("504", 504), False, True),
        (failed("RequestTimeout", 400), False, True),
        (failed("Malformed", 200), False, False),
        (failed("MaxCalls"), False, False),
        (failed("NotImplemented", 501), False, False),
        (failed("AccessDenied", 403), False, False),
        (failed("404", 404), False, False),
        (failed("412", 412), False, False),
        (failed("400", 400), False, False),
    ],
    ids=lambda value: value.code if isinstance(value, CallFailed) else "",
)
def test_what_asks_for_fewer_calls_and_what_for_another_try(
    failure: CallFailed, throttle: bool, transient: bool
) -> None:
    assert (is_throttle(failure), is_transient(failure)) == (throttle, transient)


def test_some_failures_mean_that_the_object_is_gone() -> None:
    codes = ("NoSuchKey", "NoSuchVersion", "404", "405", "MethodNotAllowed")
    others = ("403", "400", "AccessDenied", "NoSuchBucket", "NoSuchUpload", "503")
    assert [code for code in (*codes, *others) if is_gone(failed(code))] == [*codes]


def test_failure_of_one_object_dooms_nothing() -> None:
    codes = ("403", "400", "404", "AccessDenied", "SlowDown", "InvalidRequest", "Timeout")
    assert [code for code in codes if doom(failed(code), "my-bucket") is not None] == []


@pytest.mark.parametrize(
    ("failure", "words"),
    [
        (failed("NoSuchBucket", 404), "'my-bucket'"),
        (failed("301", 301, **{"x-amz-bucket-region": "eu-south-1"}), "--region eu-south-1"),
        (failed("IllegalLocationConstraintException", 400), "--region"),
        (failed("ExpiredTokenException", 400), "renew them"),
        (failed("InvalidClientTokenId", 403), "--profile"),
        (failed("RequestTimeTooSkewed", 403), "clock"),
    ],
    ids=lambda value: value.code if isinstance(value, CallFailed) else "",
)
def test_what_dooms_the_run_names_the_fix(failure: CallFailed, words: str) -> None:
    error = doom(failure, "my-bucket")
    assert error is not None
    assert words in str(error)
    assert failure.code in str(error)
