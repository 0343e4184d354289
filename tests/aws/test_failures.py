"""The translation of each exception of an SDK, and the kinds of codes."""

from __future__ import annotations

import http.client
from typing import Any

import urllib3.exceptions
from botocore import exceptions as sdk
from botocore.parsers import ResponseParserError

from auditor.aws.failures import is_gone, is_throttle, is_transient
from auditor.aws.sdk_errors import translate
from auditor.errors import BucketError, CallFailed, CredentialsError, UsageError

URL = "http://127.0.0.1:1"


def client_error(code: str, status: int, **headers: str) -> sdk.ClientError:
    meta = {"HTTPStatusCode": status, "HTTPHeaders": headers}
    response: Any = {"Error": {"Code": code, "Message": "words"}, "ResponseMetadata": meta}
    return sdk.ClientError(response, "GetObjectAcl")


def failed(code: str, status: int = 0, **headers: str) -> CallFailed:
    return CallFailed("GetObjectAcl", code, status, headers=headers)


CODES: dict[str, list[Exception]] = {
    "Timeout": [
        sdk.ReadTimeoutError(endpoint_url=URL),
        urllib3.exceptions.ReadTimeoutError(None, URL, "late"),  # type: ignore[arg-type]
        TimeoutError(),
    ],
    "ConnectionError": [
        sdk.ConnectTimeoutError(endpoint_url=URL),
        sdk.EndpointConnectionError(endpoint_url=URL),
        sdk.ConnectionClosedError(endpoint_url=URL),
        sdk.SSLError(endpoint_url=URL, error="x"),
        sdk.ProxyConnectionError(proxy_url=URL),
        sdk.HTTPClientError(error="x"),
        sdk.ResponseStreamingError(error="x"),
        sdk.IncompleteReadError(actual_bytes=1, expected_bytes=2),
        urllib3.exceptions.ProtocolError("x", http.client.IncompleteRead(b"")),
        ConnectionResetError(),
    ],
    "BrokenReply": [ResponseParserError("x")],
}


def test_failure_of_one_call_is_tried_again() -> None:
    for code, errors in CODES.items():
        for error in errors:
            failure = translate("GetObjectAcl", error)
            assert isinstance(failure, CallFailed), error
            assert (failure.action, failure.code, failure.status) == ("GetObjectAcl", code, 0), error
            assert is_transient(failure), error


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


def test_some_failures_ask_for_fewer_calls_and_some_for_another_try() -> None:
    fewer = [
        ("SlowDown", 503),
        ("503", 503),
        ("Whatever", 503),
        ("TooManyRequests", 429),
        ("RequestLimitExceeded", 400),
    ]
    again = [("InternalError", 500), ("502", 502), ("504", 504), ("RequestTimeout", 400)]
    never = [("Malformed", 200), ("MaxCalls", 0), ("NotImplemented", 501), ("AccessDenied", 403), ("404", 404)]
    codes = [*fewer, *again, *never, ("412", 412), ("400", 400)]
    assert [code for code in codes if is_throttle(failed(*code))] == fewer
    assert [code for code in codes if is_transient(failed(*code))] == [*fewer, *again]


def test_some_failures_mean_that_the_object_is_gone() -> None:
    codes = ("NoSuchKey", "NoSuchVersion", "404", "405", "MethodNotAllowed")
    others = ("403", "400", "AccessDenied", "NoSuchBucket", "NoSuchUpload", "503")
    assert [code for code in (*codes, *others) if is_gone(failed(code))] == [*codes]
