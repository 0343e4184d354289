"""Failures on every engine: one request, then CallFailed with the code; and cancelled calls."""

from __future__ import annotations

import asyncio
import itertools
import random
import re
from collections.abc import Iterator, Mapping
from typing import Final

import pytest

from auditor.errors import CallFailed
from auditor.s3.engines.base import Engine, Span
from tests.s3.engines.common import CALLS, failure_of, read
from tests.s3.engines.conftest import Opening
from tests.s3.http.raw_server import Peer, Script, serving
from tests.support.servers.stub import StubServer
from tests.support.servers.stub_faults import (
    BLACK_HOLE,
    CUT,
    EMPTY,
    EXPIRED_TOKEN,
    INCOMPLETE,
    INTERNAL_ERROR,
    RESET,
    SLOW_DOWN,
    TRUNCATED,
    error,
)
from tests.support.servers.world import StubBucket

SECOND_TRY_AFTER_RESET: Final[Mapping[str, bool]] = {
    "aioboto3": True,  # aiohttp sends once more what a kept connection lost before the answer began
    "boto3": False,
    "direct": True,  # sent once more where a kept connection was lost before the answer began
}

FAILURES: Final = {
    "denied": (error(403, "AccessDenied"), "AccessDenied", 403),
    "no such key": (error(404, "NoSuchKey"), "NoSuchKey", 404),
    "no such bucket": (error(404, "NoSuchBucket"), "NoSuchBucket", 404),
    "a delete marker": (error(405, "MethodNotAllowed"), "MethodNotAllowed", 405),
    "bad request": (error(400, "InvalidRequest"), "InvalidRequest", 400),
    "expired credentials": (EXPIRED_TOKEN, "ExpiredToken", 400),
    "overwritten": (error(412, "PreconditionFailed"), "PreconditionFailed", 412),
    "moved": (error(301, "PermanentRedirect"), "PermanentRedirect", 301),
    "moved for now": (error(307, "TemporaryRedirect"), "TemporaryRedirect", 307),
    "wrong region": (error(400, "AuthorizationHeaderMalformed"), "AuthorizationHeaderMalformed", 400),
    "slow down": (SLOW_DOWN, "SlowDown", 503),
    "internal error": (INTERNAL_ERROR, "InternalError", 500),
}


WITHOUT_BODY: Final = {
    "a bare 502": (error(502), "502"),
    "a bare 504": (error(504), "504"),
    "half of the document": (TRUNCATED, "500"),  # botocore makes a 500 of it, which is tried again
    "nothing": (EMPTY, "Malformed"),
    "a document with nothing in it": (INCOMPLETE, "Malformed"),
}


class TestFailures:
    async def test_code_and_status_after_one_request(
        self, engine: Engine, stub: StubServer, bucket: StubBucket
    ) -> None:
        bucket.put("key")
        for what, (fault, code, status) in FAILURES.items():
            stub.faults = [fault]
            for operation, call in CALLS.items():
                stub.forget()
                failure = await failure_of(engine, call)
                expected = str(status) if operation == "HeadObject" else code
                assert (failure.action, failure.code, failure.status) == (operation, expected, status), what
                assert [logged.operation for logged in stub.requests] == [operation], what

    async def test_answer_without_a_usable_body(self, engine: Engine, stub: StubServer, bucket: StubBucket) -> None:
        """GetObject is left out: any bytes may be an object's, and the reader checks their number."""
        bucket.put("key")
        for what, (fault, code) in WITHOUT_BODY.items():
            stub.faults = [fault]
            for operation in ("ListObjectsV2", "ListObjectVersions", "GetObjectAcl", "HeadObject"):
                stub.forget()
                failure = await failure_of(engine, CALLS[operation])
                # A HEAD has no body that could be halved: what is left is one without its headers.
                expected = "Malformed" if operation == "HeadObject" and fault is TRUNCATED else code
                assert (failure.action, failure.code) == (operation, expected), what
                assert len(stub.requests) == 1, what

    async def test_reset(self, engine: Engine, name: str, stub: StubServer, bucket: StubBucket) -> None:
        bucket.put("key")
        for operation, call in CALLS.items():
            stub.faults = []
            await call(engine)
            stub.forget()
            stub.faults = [RESET]
            failure = await failure_of(engine, call)
            assert (failure.action, failure.code, failure.status) == (operation, "ConnectionError", 0)
            assert len(stub.requests) == 1 + SECOND_TRY_AFTER_RESET[name]

    async def test_body_cut_off(self, engine: Engine, stub: StubServer, bucket: StubBucket) -> None:
        bucket.put("key", b"x" * 1000)
        stub.faults = [CUT]
        for operation in ("ListObjectsV2", "ListObjectVersions", "GetObjectAcl", "GetObject"):
            stub.forget()
            failure = await failure_of(engine, CALLS[operation])
            assert (failure.action, failure.code) == (operation, "ConnectionError")
            assert len(stub.requests) == 1

    async def test_no_answer_in_time(self, opening: Opening, stub: StubServer, bucket: StubBucket) -> None:
        bucket.put("key")
        stub.faults = [BLACK_HOLE]
        async with opening(first_answer=0.1, read_timeout=0.1, concurrency=5) as engine:
            failures = await asyncio.gather(*(failure_of(engine, call) for call in CALLS.values()))
        assert [(failure.action, failure.code, failure.status) for failure in failures] == [
            (operation, "Timeout", 0) for operation in CALLS
        ]
        assert len(stub.requests) == len(CALLS)

    async def test_redirect_names_the_region(self, opening: Opening, bucket: StubBucket) -> None:
        bucket.region, bucket.wrong_region = "eu-central-1", "always"
        async with opening() as engine:
            for call in CALLS.values():
                failure = await failure_of(engine, call)
                assert failure.status == 301
                assert failure.headers["x-amz-bucket-region"] == "eu-central-1"


async def _arrival(stub: StubServer) -> None:
    """Wait until a request has reached the stub, which runs in a thread of its own."""
    while not stub.requests:  # noqa: ASYNC110 - no event crosses from that thread
        await asyncio.sleep(0.01)


class TestResuming:
    @pytest.mark.parametrize("size", [999, 1_000_000])
    async def test_body_that_is_cut_again_and_again_is_read_on_at_the_very_byte(
        self, opening: Opening, size: int
    ) -> None:
        """Each answer is cut after another number of bytes, by a close_notify or by a reset."""
        whole = random.Random(7).randbytes(300_000)
        cuts = itertools.cycle([0, 1, 16_383, 100_000, 65_537])
        got, buffer = bytearray(), memoryview(bytearray(size))
        async with (
            serving(cutting(whole, cuts)) as server,
            opening(endpoint_url=f"http://127.0.0.1:{server.port}") as engine,
        ):
            for _ in range(60):
                failure = await read_on(engine, got, buffer, len(whole))
                if failure is None:
                    break
                assert (failure.action, failure.code) == ("GetObject", "ConnectionError")
        assert bytes(got) == whole


async def read_on(engine: Engine, got: bytearray, buffer: memoryview, length: int) -> CallFailed | None:
    """Read on from the end of `got`; returns the failure."""
    try:
        async with engine.get("key", None, "e", Span(len(got)) if got else None) as body:
            assert body.length == length - len(got)
            while count := await body.readinto(buffer):
                got += buffer[:count]
    except CallFailed as failure:
        got += buffer[: failure.read]
        return failure
    return None


def cutting(whole: bytes, cuts: Iterator[int]) -> Script:
    """One object, whose answers end after so many bytes of the body, every other one by a reset."""

    async def script(peer: Peer) -> None:
        wanted = re.search(rb"(?i)\r\nrange: bytes=(\d+)-\r\n", await peer.request())
        first = int(wanted[1]) if wanted else 0
        status = b"206 Partial Content" if wanted else b"200 OK"
        extra = b"Content-Range: bytes %d-%d/%d\r\n" % (first, len(whole) - 1, len(whole)) if wanted else b""
        length = len(whole) - first
        head = b'HTTP/1.1 %s\r\nETag: "e"\r\n%sContent-Length: %d\r\n\r\n' % (status, extra, length)
        await peer.send(head + whole[first:][: next(cuts)])
        if peer.number % 2:
            await asyncio.sleep(0.02)
            await peer.reset()

    return script


class TestCancellation:
    async def test_cancelled_in_mid_call_the_engine_goes_on(
        self, opening: Opening, stub: StubServer, bucket: StubBucket
    ) -> None:
        bucket.put("key", b"body")
        async with opening(concurrency=1, read_timeout=0.5) as engine:
            for operation, call in CALLS.items():
                stub.forget()
                stub.faults = [BLACK_HOLE]
                task = asyncio.ensure_future(call(engine))
                await _arrival(stub)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                stub.faults = []
                assert await read(engine, "key") == b"body", operation
