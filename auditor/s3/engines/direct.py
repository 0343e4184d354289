"""The engine `direct`: HTTPS requests that the auditor signs itself, without an SDK."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import lru_cache
from typing import Final

from msgspec.structs import replace

from auditor.aws.connection import Connection
from auditor.aws.credentials import CredentialSource, NoCredentials
from auditor.aws.endpoint import Origin, Services, proxy_for, resolve_endpoint, tls_context
from auditor.errors import CallFailed
from auditor.model.object import Acl, Head
from auditor.model.version import VERSION
from auditor.s3.checksums import CHECKSUM_MODE
from auditor.s3.engines import answers as headers
from auditor.s3.engines import xml_answers as documents
from auditor.s3.engines import xml_answers as settings
from auditor.s3.engines.answers import Reply
from auditor.s3.engines.base import Engine, ListQuery, Page, Position, Span
from auditor.s3.engines.signed import Pairs, SignedRequests, failure_of, lost, query_of, transport_errors
from auditor.s3.http.base import Response, Server, Stream, StreamingTransport, Transport, TransportError
from auditor.s3.http.pool import HttpTransport, ThinStreams

PAGES_AT_ONCE: Final = 2
SECRETS: Final = frozenset({"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_SECURITY_TOKEN"})
_LARGEST_ERROR: Final = 64 * 1024


class DirectBody:
    """The bytes of an object (a Body) from the answer to a GET.

    Raises CallFailed (Malformed) for an answer without length or ETag, or with another byte range than asked for.
    """

    def __init__(self, stream: Stream, span: Span | None) -> None:
        self.length, self.etag, self.stored = headers.body_facts(stream.headers, span)
        self._stream = stream

    async def readinto(self, buffer: memoryview) -> int:
        try:
            return await self._stream.readinto(buffer)
        except TransportError as error:
            failure = lost("GetObject", error)
            failure.read = error.read
            raise failure from error


_IDENTITY: Final = b"Action=GetCallerIdentity&Version=2011-06-15"
_ACCESS_POINTS: Final = "v20180820/accesspoint"
_PATHS: Final = {
    "GetPublicAccessBlock": "v20180820/configuration/publicAccessBlock",
    "ListAccessPoints": _ACCESS_POINTS,
    "ListAccessGrantsInstances": "v20180820/accessgrantsinstances",
    "ListAccessGrants": "v20180820/accessgrantsinstance/grants",
    "GetAccessGrantsInstanceResourcePolicy": "v20180820/accessgrantsinstance/resourcepolicy",
}
"""By action of S3 Control whose parameters are all in the query: the path of the request."""
_QUERIES: Final = {"Bucket": "bucket", "NextToken": "nextToken"}
"""By parameter of these: its name in the query."""
_BELOW_ACCESS_POINT: Final = {"GetAccessPointPolicy": "/policy", "GetAccessPointPolicyStatus": "/policyStatus"}


class DirectEngine:
    """An engine that signs and sends each request itself, without an SDK.

    origin: the bucket's server, as signatures name it. server: the same one, as transports connect to it. services: the
    servers for calls that are not on the bucket (STS, for example); None if only the SDK can find these servers, and so
    has to read the bucket's settings.
    """

    def __init__(self, connection: Connection, origin: Origin, server: Server, services: Services | None) -> None:
        role = connection.role
        self._bucket = connection.bucket
        self._origin = origin
        self._server = replace(server, first_answer=connection.first_answer)
        self._services = services
        source = NoCredentials if connection.unsigned else CredentialSource
        self._credentials = source(connection.profile, load=None if role is None else role.loader())
        self._small, self._pages, self._large = _transports(server, connection.first_answer)
        self._requests = SignedRequests(origin, self._credentials, self._small)
        self._send = self._requests.send
        self._others: dict[Origin, SignedRequests] = {}
        common = [("user-agent", f"s3-auditor/{VERSION}")]
        self._user_agent: Pairs = tuple(common)
        if connection.expected_owner:
            common.append(("x-amz-expected-bucket-owner", connection.expected_owner))
        self._question: Pairs = tuple(common)
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
        asked = query_of(query.action, query.pairs(position))
        answer = await self._send(query.action, "GET", "", asked, self._listing, self._pages)
        return documents.page(query, answer.body)

    async def get_acl(self, key: str, version_id: str | None) -> Acl:
        asked = "acl=" if version_id is None else query_of("GetObjectAcl", [("acl", ""), ("versionId", version_id)])
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
        request, added = self._requests.signed(credentials, "GetObject", "GET", key, asked, tuple(sorted(extra)))
        opening = self._large.stream(request)
        with transport_errors("GetObject"):
            stream = await opening.__aenter__()
        try:
            if stream.status not in (200, 206):
                raise await self._refused(stream, added)
            yield DirectBody(stream, span)
        finally:
            await opening.__aexit__(None, None, None)

    @property
    def asks(self) -> bool:
        return self._services is not None

    async def head_bucket(self) -> Mapping[str, str]:
        answer = await self._send("HeadBucket", "HEAD", "", "", self._question)
        return headers.texts(answer.headers)

    async def ask(self, action: str, token: str | None = None) -> Reply:
        assert self._services is not None
        if action == "ListBuckets":
            asked = query_of(action, [("prefix", self._bucket)])
            answer = await self._to(self._services.s3).send(action, "GET", "", asked, self._user_agent)
        elif action == "GetCallerIdentity":
            form = ("content-type", "application/x-www-form-urlencoded")
            extra = (("content-length", str(len(_IDENTITY))), form, *self._user_agent)
            answer = await self._to(self._services.sts).send(action, "POST", "", "", extra, body=_IDENTITY)
        else:
            page = "" if token is None else f"{query_of(action, [('continuation-token', token)])}&"
            answer = await self._send(action, "GET", "", f"{page}{settings.QUERIES[action]}", self._question)
        return settings.setting(action, answer.body)

    async def control(self, action: str, account: str, arguments: Mapping[str, str]) -> Reply:
        assert self._services is not None
        given = dict(arguments)
        path = _PATHS.get(action) or f"{_ACCESS_POINTS}/{given.pop('Name')}{_BELOW_ACCESS_POINT.get(action, '')}"
        query = query_of(action, [(_QUERIES[name], value) for name, value in given.items()])
        extra = (*self._user_agent, ("x-amz-account-id", account))
        answer = await self._to(self._services.control_of(account)).send(action, "GET", path, query, extra)
        return settings.setting(action, answer.body)

    def _to(self, origin: Origin) -> SignedRequests:
        """Return the sender of requests to the server `origin`.

        Requests to the bucket's own server share its connections.
        """
        found = self._others.get(origin)
        if found is None:
            server = replace(self._server, host=origin.host, port=origin.port)
            transport = self._small if origin.url == self._origin.url else HttpTransport(server)
            found = self._others[origin] = SignedRequests(origin, self._credentials, transport)
        return found

    async def close(self) -> None:
        for transport in {self._small, self._pages, *(other.transport for other in self._others.values())}:
            await transport.close()
        await self._large.close()

    async def _refused(self, stream: Stream, added: float) -> CallFailed:
        """Read the error document of a refused GetObject, and return the failure to raise.

        added: how many seconds were added to this machine's clock for the request's signature.
        """
        buffer = memoryview(bytearray(_LARGEST_ERROR))
        with transport_errors("GetObject"):
            count = await stream.readinto(buffer)
        answer = Response(stream.status, stream.reason, stream.headers, bytes(buffer[:count]))
        return await self._requests.refused(failure_of("GetObject", answer), added)


def _version(action: str, version_id: str | None) -> str:
    return "" if version_id is None else query_of(action, [("versionId", version_id)])


@asynccontextmanager
async def open_engine(connection: Connection) -> AsyncIterator[Engine]:
    """Open an engine, with at most connection.concurrency connections for ACLs and HEADs, and as many more for bodies.

    Listings have a few connections of their own. Behind a proxy all requests share one set of connections.
    """
    engine = DirectEngine(connection, *await asyncio.to_thread(_find_server, connection, _environment()))
    try:
        yield engine
    finally:
        await engine.close()


def _transports(server: Server, first_answer: float) -> tuple[Transport, Transport, StreamingTransport]:
    """Make the transports for ACLs, HEADs and the bucket's settings, for listings, and for bodies of objects."""
    if server.proxy is not None:
        from auditor.s3.http.aiohttp import AiohttpTransport  # imports aiohttp

        all_calls = AiohttpTransport(server)
        return all_calls, all_calls, all_calls
    # Many answers are in memory at once. No ACL is larger than this, so no server can fill the memory with one.
    small = replace(server, largest_body=2 * documents.LARGEST_ACL, first_answer=first_answer)
    # A connection's buffers grow with its answers and do not shrink: only few may receive pages of half a megabyte.
    return HttpTransport(small), HttpTransport(replace(server, connections=PAGES_AT_ONCE)), ThinStreams(server)


@lru_cache(maxsize=32)
def _find_server(
    connection: Connection, environment: frozenset[tuple[str, str]]
) -> tuple[Origin, Server, Services | None]:
    """Find the bucket's server, as signatures name it (Origin) and as transports connect to it (Server).

    Return also the servers for calls that are not on the bucket; None if only the SDK can find them. The result is
    cached: finding it takes the CPU of hundreds of calls. environment: the variables on which the result depends, as a
    part of the cache key. Raises UsageError or CredentialsError for settings that cannot be used.
    """
    origin = resolve_endpoint(connection)
    server = Server(
        host=origin.host,
        port=origin.port,
        tls=tls_context(connection) if origin.scheme == "https" else None,
        connections=max(1, connection.concurrency),
        connect_timeout=connection.connect_timeout,
        read_timeout=connection.read_timeout,
        least_rate=connection.least_rate,
        proxy=proxy_for(origin),
    )
    return origin, server, Services.of(connection)


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
