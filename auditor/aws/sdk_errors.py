"""Translate botocore's exceptions to the auditor's."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPException, IncompleteRead, RemoteDisconnected
from traceback import walk_tb
from typing import Any, Final

from botocore import exceptions as sdk
from botocore.parsers import ResponseParserError
from urllib3 import exceptions as http

from auditor.aws.answer_limits import OversizedAnswer
from auditor.errors import AuditorError, CallFailed, CredentialsError, UsageError

_LOST = (
    sdk.ConnectionError,  # base class: closed or refused connections, unreachable hosts, TLS, proxies
    sdk.HTTPClientError,
    sdk.IncompleteReadError,
    http.HTTPError,  # botocore does not translate errors while it reads the body of an error answer
    OSError,
)
_NO_CREDENTIALS = (
    sdk.NoCredentialsError,
    sdk.PartialCredentialsError,
    sdk.CredentialRetrievalError,
    sdk.TokenRetrievalError,
    sdk.SSOError,
    sdk.LoginError if hasattr(sdk, "LoginError") else sdk.SSOError,
)
_PARSERS: Final = frozenset({"botocore.parsers", "aiobotocore.parsers"})
_LONGEST_CODE: Final = 100
_TIMEOUTS = (sdk.ReadTimeoutError, http.TimeoutError, asyncio.TimeoutError, TimeoutError)


def from_client_error(action: str, error: Any) -> CallFailed:
    """Convert a botocore ClientError to CallFailed. action: the API operation."""
    meta = error.response.get("ResponseMetadata", {})
    fault = error.response.get("Error", {})
    return CallFailed(
        action,
        str(fault.get("Code", "Unknown"))[:_LONGEST_CODE],
        int(meta.get("HTTPStatusCode", 0)),
        str(fault.get("Message", ""))[:500],
        {str(name).lower(): str(value) for name, value in meta.get("HTTPHeaders", {}).items()},
    )


def code_of(error: Exception) -> str | None:
    """Return the code of a service's refusal; None for another exception."""
    found: str | None = error.response.get("Error", {}).get("Code") if isinstance(error, sdk.ClientError) else None
    return found


def translate(
    action: str,
    error: Exception,
    lost: tuple[type[Exception], ...] = (),
    broken: tuple[type[Exception], ...] = (),
) -> Exception:
    """Convert an exception of the SDK to one of the auditor's errors.

    Return the exception unchanged if it is the auditor's own, or unknown and so probably a bug. action: the API
    operation. lost: more exception types that mean a lost connection. broken: more exception types that mean an answer
    which is not HTTP. An engine on aiohttp passes aiohttp's types, because importing aiohttp here would double the
    start-up time.
    """
    if isinstance(error, (AuditorError, CallFailed)):
        return error
    if isinstance(error, sdk.ClientError):
        return from_client_error(action, error)
    if isinstance(error, _NO_CREDENTIALS):
        return CredentialsError(
            f"no usable AWS credentials ({type(error).__name__}): set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY,"
            " a role, or --profile"
        )
    if isinstance(error, _TIMEOUTS):
        return CallFailed(action, "Timeout", message=str(error)[:500])
    if _is_broken(error, broken):
        return CallFailed(action, "BrokenReply", message=str(error)[:500])
    if isinstance(error, (*_LOST, *lost)):
        return CallFailed(action, "ConnectionError", message=str(error)[:500])
    if isinstance(error, OversizedAnswer) or any(
        frame.f_globals.get("__name__") in _PARSERS for frame, _ in walk_tb(error.__traceback__)
    ):
        # The server's answer is malformed: a date or a number is invalid, or an element is in the wrong place.
        return CallFailed(action, "Malformed", 200, str(error)[:500])
    if isinstance(error, (sdk.BotoCoreError, ValueError)):
        return UsageError(f"the AWS SDK refuses the settings: {error}")
    return error


def _is_broken(error: Exception, broken: tuple[type[Exception], ...]) -> bool:
    """True if an answer was not HTTP, or larger than a limit of HTTP's own parts. The SDK wraps the exception that says
    so. broken: as in translate().
    """
    inner: object = error
    while isinstance(inner, Exception):
        if isinstance(inner, (ResponseParserError, http.InvalidChunkLength, *broken)):
            return True
        if isinstance(inner, HTTPException) and not isinstance(inner, (RemoteDisconnected, IncompleteRead)):
            return True
        wrapped = inner.kwargs.get("error") if isinstance(inner, sdk.BotoCoreError) else None
        inner = wrapped or next((one for one in inner.args if isinstance(one, Exception)), None)
    return False


@contextmanager
def sdk_errors(
    action: str, lost: tuple[type[Exception], ...] = (), broken: tuple[type[Exception], ...] = ()
) -> Iterator[None]:
    """Convert the SDK's exceptions in this `with` block to the auditor's errors. The arguments are those of
    translate().
    """
    try:
        yield
    except Exception as error:
        ours = translate(action, error, lost, broken)
        if ours is error:
            raise
        raise ours from error
