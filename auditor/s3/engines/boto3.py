"""The engine `boto3`: the blocking SDK in a thread pool, with as many threads and connections as the concurrency."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any, Final

from auditor.aws import session as aws
from auditor.aws.answer_limits import OBJECT
from auditor.aws.connection import Connection
from auditor.aws.sdk_errors import sdk_errors
from auditor.errors import CallFailed
from auditor.model.object import Acl, Head
from auditor.s3.checksums import stored_of_reply, without_validation
from auditor.s3.engines import parse_reply as replies
from auditor.s3.engines.base import Engine, ListQuery, Page, Position, Span
from auditor.s3.engines.requests import LISTING_ACTIONS, Requests

PIECE: Final = 64 * 1024
"""Number of bytes to read at once. If the connection breaks, the SDK loses the bytes of the piece that it was
reading."""


class Boto3Body:
    """The bytes of an object (a Body) from botocore, read in the engine's threads. Raises CallFailed with the code
    Malformed for a reply without a length or an ETag.
    """

    def __init__(self, reply: Any, span: Span | None, run: Callable[..., Any]) -> None:
        self.length, self.etag = replies.length_and_etag(reply)
        self.stored: Mapping[str, str] = {} if span else stored_of_reply(reply)
        self._stream = reply["Body"]
        self._run = run

    async def readinto(self, buffer: memoryview) -> int:
        count: int = await self._run("GetObject", self._fill, buffer)
        return count

    def _fill(self, buffer: memoryview) -> int:
        count, size = 0, len(buffer)
        try:
            with sdk_errors("GetObject"):
                while count < size and (read := self._stream.readinto(buffer[count : count + PIECE])):
                    count += read
        except CallFailed as failure:
            failure.read = count
            raise
        return count


class Boto3Engine:
    """An engine whose calls are made by one client of boto3, which is thread-safe (boto3 guide, "Multithreading")."""

    def __init__(self, connection: Connection, client: Any, pool: ThreadPoolExecutor) -> None:
        self._requests = Requests(connection)
        self._client = client
        self._pool = pool

    async def _run(self, action: str, call: Callable[..., Any], *args: Any, **arguments: Any) -> Any:
        def attempt() -> Any:
            with sdk_errors(action):
                return call(*args, **arguments)

        return await asyncio.get_running_loop().run_in_executor(self._pool, attempt)

    @property
    def open_connections(self) -> int:
        return 0  # the SDK does not count them

    def keep_idle(self, connections: int) -> None:
        pass  # the SDK manages its pool itself

    async def list_page(self, query: ListQuery, position: Position | None) -> Page:
        method, arguments = self._requests.listing(query, position)
        reply = await self._run(LISTING_ACTIONS[method], getattr(self._client, method), **arguments)
        return replies.page(query, reply)

    async def get_acl(self, key: str, version_id: str | None) -> Acl:
        arguments = self._requests.object(key, version_id)
        return replies.acl("GetObjectAcl", await self._run("GetObjectAcl", self._client.get_object_acl, **arguments))

    async def head(self, key: str, version_id: str | None, *, checksum: bool) -> Head:
        arguments = self._requests.head(key, version_id, checksum)
        reply = await self._run("HeadObject", self._client.head_object, **arguments)
        return replies.head(reply, replies.from_latin_1)

    @asynccontextmanager
    async def get(
        self, key: str, version_id: str | None, etag: str | None, span: Span | None = None
    ) -> AsyncIterator[Boto3Body]:
        arguments = self._requests.get(key, version_id, etag, span)
        reply = await self._run("GetObject", self._client.get_object, **arguments)
        try:
            replies.check_span(reply.get("ContentRange"), span)
            yield Boto3Body(reply, span, self._run)
        finally:
            await self._run("GetObject", reply["Body"].close)


@asynccontextmanager
async def open_engine(connection: Connection) -> AsyncIterator[Engine]:
    """Open an engine of boto3, with threads and connections of its own: connection.concurrency of each."""
    pool = ThreadPoolExecutor(max(1, connection.concurrency), thread_name_prefix="auditor-boto3")
    try:
        loop = asyncio.get_running_loop()
        client = await loop.run_in_executor(
            pool,
            lambda: without_validation(
                aws.make_client("s3", connection, endpoint_url=connection.endpoint_url, limits=OBJECT)
            ),
        )
        try:
            yield Boto3Engine(connection, client, pool)
        finally:
            client.close()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
