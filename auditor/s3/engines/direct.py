"""Engine `direct`: plain HTTPS requests that we sign ourselves, without an SDK."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Final

from auditor.aws.connection import Connection
from auditor.aws.credentials import CredentialSource
from auditor.aws.endpoint import Origin, proxy_for, resolve_endpoint, tls_context
from auditor.aws.failures import CLOCK_SET, CREDENTIALS_RENEWED, EXPIRED
from auditor.aws.sigv4 import Credentials, Signer, UnsignableError, encode_key, encode_query
from auditor.errors import CallFailed
from auditor.model.object import Acl, Head
from auditor.model.version import VERSION
from auditor.s3.checksums import CHECKSUM_MODE, stored
from auditor.s3.engines import parse_headers as headers
from auditor.s3.engines import parse_xml as documents
from auditor.s3.engines.base import Engine, ListQuery, Page, Position, Span
from auditor.s3.engines.parse_reply import check_span
from auditor.s3.engines.requests import listing_query
from auditor.s3.http.base import (
    Request,
    Response,
    Server,
    Stream,
    StreamingTransport,
    Transport,
    TransportError,
    TransportTimeoutError,
)
from auditor.s3.http.transport import HttpTransport, ThinStreams

SKEW_SECONDS: Final = 240.0
"""Seconds. If this machine's clock is wrong by more, the engine corrects the time of its requests.

S3 refuses a request whose time is wrong by fifteen minutes.
"""
PAGES_AT_ONCE: Final = 2
SECRETS: Final = frozenset({"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_SECURITY_TOKEN"})
_LONGEST_CODE: Final = 100
_LARGEST_ERROR: Final = 64 * 1024

Pairs = tuple[tuple[str, str], ...]
"""Headers of a request, as pairs of name and value. The names are lower-case and sorted."""


class DirectBody:
    """The Body of a GetObject. Raises CallFailed Malformed for an answer without a length or an ETag."""

    def __init__(self, stream: Stream, span: Span | None) -> None:
        content_range = stream.headers.get(b"content-range")
        check_span(None if content_range is None else headers.text(content_range), span)
        self.length, self.etag = headers.length_and_etag("GetObject", stream.headers)
        self.stored: Mapping[str, str] = {} if span else stored(stream.headers)
        self._stream = stream

    async def readinto(self, buffer: memoryview) -> int:
        try:
            return await self._stream.readinto(buffer)
        except TransportError as error:
            failure = lost("GetObject", error)
            failure.read = error.read
            raise failure from error


class DirectEngine:
    """An engine that signs each request itself, with the current credentials.

    It has three transports: `small` for ACLs and HEADs, `pages` for listings, `large` for object bodies.
    """

    def __init__(
        self,
        connection: Connection,
        origin: Origin,
        credentials: CredentialSource,
        *,
        small: Transport,
        pages: Transport,
        large: StreamingTransport,
    ) -> None:
        self._bucket_path = f"{origin.path_prefix}/"
        self._host = origin.host_header
        self._signer = Signer(origin.region, origin.service)
        self._credentials = credentials
        self._small = small
        self._pages = pages
        self._large = large
        self._clock_behind = 0.0
        common = [("user-agent", f"s3-auditor/{VERSION}")]
        if connection.expected_owner:
            common.append(("x-amz-expected-bucket-owner", connection.expected_owner))
        if connection.requester_pays:
            common.append(("x-amz-request-payer", "requester"))
        self._common: Pairs = tuple(common)
        self._with_checksum: Pairs = tuple(sorted([*common, CHECKSUM_MODE]))
        self._listing: Pairs = tuple(sorted([*common, ("x-amz-optional-object-attributes", "RestoreStatus")]))

    @property
    def open_connections(self) -> int:
        return self._small.open_connections

    def keep_idle(self, connections: int) -> None:
        self._small.keep_idle(connections)

    async def list_page(self, query: ListQuery, position: Position | None) -> Page:
        action = "ListObjectVersions" if query.versions else "ListObjectsV2"
        asked = _query(action, listing_query(query, position))
        answer = await self._send(action, "GET", "", asked, self._listing, self._pages)
        return documents.page(query, answer.body)

    async def get_acl(self, key: str, version_id: str | None) -> Acl:
        asked = "acl=" if version_id is None else _query("GetObjectAcl", [("acl", ""), ("versionId", version_id)])
        return documents.acl("GetObjectAcl", (await self._send("GetObjectAcl", "GET", key, asked, self._common)).body)

    async def head(self, key: str, version_id: str | None, *, checksum: bool) -> Head:
        extra = self._with_checksum if checksum else self._common
        return headers.head(
            (await self._send("HeadObject", "HEAD", key, _version("HeadObject", version_id), extra)).headers
        )

    @asynccontextmanager
    async def get(
        self, key: str, version_id: str | None, etag: str | None, span: Span | None = None
    ) -> AsyncIterator[DirectBody]:
        extra = [*(self._with_checksum if span is None else self._common)]
        if etag is not None:
            extra.append(("if-match", f'"{etag}"'))
        if span is not None:
            extra.append(("range", span.header()))
        asked = _version("GetObject", version_id)
        credentials = await self._credentials.current()
        request, behind = self._signed(credentials, "GetObject", "GET", key, asked, tuple(sorted(extra)))
        opening = self._large.stream(request)
        with transport_errors("GetObject"):
            stream = await opening.__aenter__()
        try:
            if stream.status not in (200, 206):
                raise await self._refused(stream, behind)
            yield DirectBody(stream, span)
        finally:
            await opening.__aexit__(None, None, None)

    async def _send(
        self, action: str, method: str, key: str, query: str, extra: Pairs, transport: Transport | None = None
    ) -> Response:
        credentials = self._credentials.at_hand() or await self._credentials.current()
        request, behind = self._signed(credentials, action, method, key, query, extra)
        try:
            answer = await (transport or self._small).send(request)
        except TransportError as error:
            raise lost(action, error) from error
        if answer.status != 200:
            raise await self._renewed(_failure(action, answer), behind)
        return answer

    def _signed(
        self, credentials: Credentials, action: str, method: str, key: str, query: str, extra: Pairs
    ) -> tuple[Request, float]:
        """Return the signed request, and the seconds that were added to this machine's clock for it."""
        try:
            path = self._bucket_path + encode_key(key)
            behind = self._clock_behind
            signed = self._signer.sign(credentials, method, self._host, path, query, extra, time.time() + behind)
        except UnsignableError as error:
            raise _unsignable(action, error) from error
        return Request(method, f"{path}?{query}" if query else path, signed), behind

    async def _refused(self, stream: Stream, behind: float) -> CallFailed:
        """Read the error document of a refused GetObject, and return the failure."""
        buffer = memoryview(bytearray(_LARGEST_ERROR))
        with transport_errors("GetObject"):
            count = await stream.readinto(buffer)
        answer = Response(stream.status, stream.reason, stream.headers, bytes(buffer[:count]))
        return await self._renewed(_failure("GetObject", answer), behind)

    async def _renewed(self, failure: CallFailed, signed_behind: float) -> CallFailed:
        """Return the failure, or a transient one if its cause is gone: renewed credentials, or a corrected clock.

        A HEAD's 403 has no code, so for both codes the answer's Date must show that the clock is wrong.
        """
        if failure.code in EXPIRED and await self._credentials.renewed():
            return CallFailed(failure.action, CREDENTIALS_RENEWED, failure.status, failure.message, failure.headers)
        if failure.status == 403 and failure.code in ("RequestTimeTooSkewed", "403"):
            behind = _seconds_behind(failure)
            if behind is not None and abs(behind - signed_behind) >= SKEW_SECONDS:
                self._clock_behind = behind
                return CallFailed(failure.action, CLOCK_SET, failure.status, failure.message, failure.headers)
        return failure


def _version(action: str, version_id: str | None) -> str:
    return "" if version_id is None else _query(action, [("versionId", version_id)])


def _query(action: str, pairs: list[tuple[str, str]]) -> str:
    try:
        return encode_query(pairs)
    except UnsignableError as error:
        raise _unsignable(action, error) from error


def _unsignable(action: str, error: UnsignableError) -> CallFailed:
    return CallFailed(action, "Unsignable", message=str(error))


def _failure(action: str, answer: Response) -> CallFailed:
    """Convert an answer with an error status to CallFailed. A HEAD's answer has no body, so its code is the status."""
    code, message = documents.error_of(answer.body) if answer.body else ("", answer.reason)
    return CallFailed(
        action,
        (code or str(answer.status))[:_LONGEST_CODE],
        answer.status,
        message[:500],
        {headers.text(name): headers.text(value) for name, value in answer.headers.items()},
    )


def _seconds_behind(failure: CallFailed) -> float | None:
    """Return the seconds by which this machine's clock is behind the Date of the answer; None without a valid Date."""
    try:
        return parsedate_to_datetime(failure.headers["date"]).timestamp() - time.time()
    except (KeyError, ValueError, TypeError):
        return None


def lost(action: str, error: TransportError) -> CallFailed:
    """Convert a TransportError to CallFailed."""
    code = "Timeout" if isinstance(error, TransportTimeoutError) else "ConnectionError"
    return CallFailed(action, code, message=str(error)[:500])


@contextmanager
def transport_errors(action: str) -> Iterator[None]:
    """Convert the TransportErrors inside to CallFailed."""
    try:
        yield
    except TransportError as error:
        raise lost(action, error) from error


@asynccontextmanager
async def open_engine(connection: Connection) -> AsyncIterator[Engine]:
    """Open an engine. Its limit of connections is the concurrency for ACLs and HEADs, and again for bodies."""
    origin, server, credentials = await asyncio.to_thread(_prepare, connection)
    small: Transport
    pages: Transport
    large: StreamingTransport
    if server.proxy is not None:
        from auditor.s3.http.aiohttp import AiohttpTransport  # imported only if needed: it is slow

        small = pages = large = AiohttpTransport(server)
    else:
        # Many answers are in memory at once. No ACL is larger than this, so no server can fill the memory with one.
        small = HttpTransport(replace(server, largest_body=2 * documents.LARGEST_ACL))
        # A connection's buffers grow with its answers and do not shrink: only few may receive pages of half a megabyte.
        pages = HttpTransport(replace(server, connections=PAGES_AT_ONCE))
        large = ThinStreams(server)
    try:
        yield DirectEngine(connection, origin, credentials, small=small, pages=pages, large=large)
    finally:
        for transport in (small, pages, large):
            await transport.close()


def _prepare(connection: Connection) -> tuple[Origin, Server, CredentialSource]:
    """Make the parts of an engine that need files. Raises UsageError or CredentialsError for unusable settings."""
    origin, server = _find_server(connection, _environment())
    return origin, server, CredentialSource(connection.profile)


@lru_cache(maxsize=32)
def _find_server(connection: Connection, environment: frozenset[tuple[str, str]]) -> tuple[Origin, Server]:
    """Find the server of a connection. It is cached for all runs of a process: it takes the CPU of hundreds of calls.

    environment: the variables on which the result depends, as a part of the cache key.
    """
    origin = resolve_endpoint(connection)
    return origin, Server(
        host=origin.host,
        port=origin.port,
        tls=tls_context(connection) if origin.scheme == "https" else None,
        connections=max(1, connection.concurrency),
        connect_timeout=connection.connect_timeout,
        read_timeout=connection.read_timeout,
        least_rate=connection.least_rate,
        proxy=proxy_for(origin),
    )


def _environment() -> frozenset[tuple[str, str]]:
    """Return the environment variables for the SDK's configuration, proxies and certificates, without secrets."""
    return frozenset(
        (name, value)
        for name, value in os.environ.items()
        if (
            name.startswith(("AWS_", "BOTO_", "SSL_"))
            or name.upper().endswith(("_PROXY", "_CA_BUNDLE"))
            or name == "HOME"
        )
        and name not in SECRETS
    )
