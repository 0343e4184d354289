"""The engine `boto3`: the blocking SDK in a thread pool, with as many threads and connections as the concurrency."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any, ClassVar, Final

from botocore import xform_name

from auditor.aws import session as aws
from auditor.aws.answer_limits import OBJECT
from auditor.aws.connection import Connection
from auditor.aws.sdk_errors import sdk_errors
from auditor.errors import CallFailed
from auditor.s3.engines import answers as headers
from auditor.s3.engines.base import Body, Engine, Span
from auditor.s3.engines.sdk import SdkEngine, without_validation

PIECE: Final = 64 * 1024
"""Number of bytes to read at once. If the connection breaks, the SDK loses the bytes of the piece that it was
reading."""


class Boto3Body:
    """The bytes of an object (a Body) from botocore, read in the engine's threads."""

    def __init__(self, stream: Any, sent: headers.Headers, span: Span | None, run: Callable[..., Any]) -> None:
        self.length, self.etag, self.stored = headers.body_facts(sent, span)
        self._stream = stream
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


class Boto3Engine(SdkEngine):
    """An engine whose calls are made by one client of boto3, which is thread-safe (boto3 guide, "Multithreading")."""

    encoding: ClassVar[str] = "latin-1"  # by http.client

    def __init__(self, connection: Connection, client: Any, pool: ThreadPoolExecutor) -> None:
        super().__init__(connection, client)
        self._pool = pool

    async def _run(self, action: str, call: Callable[..., Any], *args: Any, **arguments: Any) -> Any:
        def attempt() -> Any:
            with sdk_errors(action):
                return call(*args, **arguments)

        return await asyncio.get_running_loop().run_in_executor(self._pool, attempt)

    async def _call(self, action: str, arguments: dict[str, Any]) -> Any:
        return await self._run(action, getattr(self._client, xform_name(action)), **arguments)

    def _body(self, stream: Any, sent: headers.Headers, span: Span | None) -> Body:
        return Boto3Body(stream, sent, span, self._run)

    async def _close(self, stream: Any) -> None:
        await self._run("GetObject", stream.close)


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
