"""Bare aiohttp on uvloop: it signs its requests and reads the answers, but parses none."""

from __future__ import annotations

import ssl
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import uvloop
from yarl import URL

from benchmarks.clients.signing import Credentials, object_request, sign
from benchmarks.clients.workers import work_through
from benchmarks.meter import Meter
from benchmarks.server.objects import BUCKET, key_of

WARM_UP: int = 2


class Bare:
    """One session. send makes one call; it raises RuntimeError unless the status is 200."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session = session
        self._url = url
        self._host = urlsplit(url).netloc
        self._credentials = Credentials("testing", "testing", "us-east-1")

    async def object(self, key: str, operations: Sequence[str]) -> None:
        for operation in operations:
            await self.send(*object_request(operation, BUCKET, key))

    async def send(self, method: str, path: str, query: str) -> bytes:
        headers = sign(self._credentials, method, self._host, path, query, time.time())
        url = URL(f"{self._url}{path}{'?' + query if query else ''}", encoded=True)
        async with self._session.request(method, url, headers=headers, allow_redirects=False) as answer:
            body = await answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{method} {path} was answered {answer.status}")
        return body


@asynccontextmanager
async def opened(url: str, authority: str, concurrency: int) -> AsyncIterator[Bare]:
    tls: ssl.SSLContext | bool = ssl.create_default_context(cafile=authority) if url.startswith("https") else True
    connector = aiohttp.TCPConnector(limit=concurrency, ssl=tls)
    async with aiohttp.ClientSession(connector=connector) as session:
        yield Bare(session, url)


def calls(
    meter: Meter, *, url: str, authority: str, operations: Sequence[str], concurrency: int, objects: int
) -> dict[str, Any]:
    """Measure the calls of so many objects, on open connections."""
    keys = [key_of(number % 1000) for number in range(objects)]

    async def measure() -> None:
        async with opened(url, authority, concurrency) as bare:

            async def call(key: str) -> None:
                await bare.object(key, operations)

            await work_through(keys[: WARM_UP * concurrency], call, concurrency)
            with meter.measuring():
                await work_through(keys, call, concurrency)

    uvloop.run(measure())
    return {"calls": objects * len(operations)}
