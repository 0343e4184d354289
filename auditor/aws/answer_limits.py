"""Bound the answers that the SDKs read: by themselves they read and parse bodies, heads and lines of any size."""

from __future__ import annotations

import http.client
from typing import Any, Final

from botocore.awsrequest import AWSHTTPConnection, AWSHTTPConnectionPool, AWSHTTPSConnection, AWSHTTPSConnectionPool
from botocore.exceptions import ConnectionClosedError, ReadTimeoutError
from msgspec import Struct
from urllib3 import exceptions as urllib3

from auditor.model.json_codec import MOST_MEMORY, memory_of

_LONGEST_LINE: Final = 64 * 1024
_LARGEST_HEAD: Final = 64 * 1024
_PIECE: Final = 64 * 1024


class OversizedAnswer(Exception):  # noqa: N818 - it becomes a failed call
    """An answer is larger than any of its kind, or takes too much memory to parse."""


class AnswerLimits(Struct, frozen=True):
    """The limits of an answer: bytes of its body, and tags and attributes of its XML together."""

    size: int
    tags: int


LISTING: Final = AnswerLimits(8 * 1024 * 1024, 100_000)
"""A page of 1,000 keys of 1,024 escaped bytes has 4 MiB, and 32,000 tags."""
SETTING: Final = AnswerLimits(2 * 1024 * 1024, 50_000)
"""A page of 1,000 access points has 800 kB."""
OBJECT: Final = AnswerLimits(256 * 1024, 4_000)
"""An ACL of 100 grants has 30 kB, and 1,300 tags and attributes. Many of them are in memory at once."""
SERVICE: Final = AnswerLimits(20 * 1024 * 1024, 250_000)
"""DynamoDB's answers have up to 16 MB, and a page of 10,000 buckets 100,000 tags."""


def check_body(body: bytes | bytearray, limits: AnswerLimits) -> None:
    """Raise OversizedAnswer for a body that is too large, or too dear to parse as XML or JSON. A document type is
    refused: it can name one text many times.
    """
    if len(body) > limits.size:
        raise OversizedAnswer("the answer is too large")
    if body[:1] in b"{[":
        if memory_of(bytes(body)) > MOST_MEMORY:
            raise OversizedAnswer("the answer takes too much memory")
    elif body.count(b"<") + body.count(b"=") > limits.tags or b"<!DOCTYPE" in body:
        raise OversizedAnswer("the answer has too many elements, or a document type")


class _BoundedFile:
    """The bytes of a connection, of which no line is read without limit. of_head: True while the head is read."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._read = 0
        self.of_head = False

    def readline(self, limit: int = -1) -> bytes:
        line: bytes = self._file.readline(_LONGEST_LINE + 1 if limit < 0 else min(limit, _LONGEST_LINE + 1))
        self._read += len(line) if self.of_head else 0
        if len(line) > _LONGEST_LINE or self._read > _LARGEST_HEAD:
            raise http.client.HTTPException("a line or the head is larger than the limit")
        return line

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


class _Response(http.client.HTTPResponse):
    """An answer whose head and lines are bounded."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._lines = _BoundedFile(self.fp)
        self.fp = self._lines  # type: ignore[assignment]

    def begin(self) -> None:
        self._lines.of_head = True
        super().begin()
        self._lines.of_head = False


class _HttpConnection(AWSHTTPConnection):  # type: ignore[misc]
    response_class = _Response


class _HttpsConnection(AWSHTTPSConnection):  # type: ignore[misc]
    response_class = _Response


class _HttpPool(AWSHTTPConnectionPool):  # type: ignore[misc]
    ConnectionCls = _HttpConnection


class _HttpsPool(AWSHTTPSConnectionPool):  # type: ignore[misc]
    ConnectionCls = _HttpsConnection


def limits_of(request: Any, others: AnswerLimits) -> AnswerLimits:
    """Return the limits of the answer to a request of the SDK. others: those of an answer that is no listing."""
    query = str(request.url).partition("?")[2].split("&")
    listing = any(part.partition("=")[0] in ("list-type", "versions") for part in query)
    return LISTING if listing and others is not SERVICE else others


class _BoundedSession:
    """Sends the requests of a client of botocore, and reads the bodies of answers up to a limit."""

    def __init__(self, session: Any, others: AnswerLimits) -> None:
        self._session = session
        self._others = others

    def send(self, request: Any) -> Any:
        streamed, request.stream_output = request.stream_output, True
        answer = self._session.send(request)
        if not streamed or answer.status_code >= 300:
            answer._content = self._body(request, answer.raw)
        return answer

    def _body(self, request: Any, raw: Any) -> bytes:
        limits, body = limits_of(request, self._others), bytearray()
        try:
            for piece in raw.stream(_PIECE):
                body += piece
                if len(body) > limits.size:
                    break
            check_body(body, limits)
        except OversizedAnswer:
            raw.close()
            raise
        except urllib3.ReadTimeoutError as error:
            raise ReadTimeoutError(endpoint_url=request.url, error=error) from error
        except urllib3.ProtocolError as error:
            raise ConnectionClosedError(error=error, request=request, endpoint_url=request.url) from error
        return bytes(body)

    def close(self) -> None:
        self._session.close()


def bounded(client: Any, others: AnswerLimits) -> Any:
    """Bound the answers that a client of boto3 reads, and return the client. others: as in limits_of().

    botocore has no setting for it, so that its endpoint gets another session.
    """
    endpoint = client._endpoint
    pools = {"http": _HttpPool, "https": _HttpsPool}
    endpoint.http_session._pool_classes_by_scheme = pools
    endpoint.http_session._manager.pool_classes_by_scheme = pools
    endpoint.http_session = _BoundedSession(endpoint.http_session, others)
    return client
