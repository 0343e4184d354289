"""The direct engine does itself what the SDK does for the others: clock, credentials, proxies, signatures."""

from __future__ import annotations

import itertools
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

import pytest

from auditor.aws.connection import Connection
from auditor.aws.failures import CLOCK_SET, CREDENTIALS_RENEWED, is_transient
from auditor.errors import CallFailed, UsageError
from auditor.s3.engines.base import Engine
from auditor.s3.engines.direct import open_engine
from tests.s3.engines.common import CALLS, failure_of
from tests.support.loop_blocking import free_loop as free_loop
from tests.support.servers.clients import BUCKET
from tests.support.servers.hooked import HookedServer
from tests.support.servers.http_server import Answer, Later
from tests.support.servers.stub import StubServer
from tests.support.servers.stub_answers import framed
from tests.support.servers.stub_calls import Call, Refused, Reply
from tests.support.servers.world import StubBucket, World

FAR: Final = timedelta(hours=9)


def filled() -> World:
    world = World()
    world.add(BUCKET).put("key", b"x")
    return world


@asynccontextmanager
async def engine_of(url: str) -> AsyncIterator[Engine]:
    async with open_engine(Connection(bucket=BUCKET, endpoint_url=url, region="eu-west-1", concurrency=4)) as engine:
        yield engine


class FarServer(StubServer):
    """A server whose clock is `ahead` of ours, and which refuses what is signed for another time."""

    ahead = FAR

    def __enter__(self) -> FarServer:
        super().__enter__()
        return self

    def answer_call(self, call: Call) -> Answer | Later:
        now = datetime.now(UTC) + self.ahead
        signed = datetime.strptime(call.headers["x-amz-date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        if abs(signed - now) < timedelta(minutes=15):
            return super().answer_call(call)
        refused = Refused(403, "RequestTimeTooSkewed", headers={"Date": format_datetime(now, usegmt=True)})
        return framed(refused.reply(call), call)


class TestClock:
    async def test_wrong_by_hours_is_set_right_by_the_first_refusal(self) -> None:
        for operation, ahead in itertools.product(CALLS, (FAR, -FAR)):
            with FarServer(filled()) as server:
                server.ahead = ahead
                async with engine_of(server.url) as engine:
                    failure = await failure_of(engine, CALLS[operation])
                    assert (failure.code, failure.status) == (CLOCK_SET, 403)
                    assert is_transient(failure)
                    for call in CALLS.values():
                        await call(engine)

    async def test_a_refusal_in_the_right_time_or_without_a_time_is_a_refusal(self) -> None:
        now = format_datetime(datetime.now(UTC), usegmt=True)
        for date in (now, "", "yesterday", "Fri, 02 Jan 999999 03:04:05 GMT"):

            def refuse(call: Call, date: str = date) -> Reply:
                return Refused(403, "RequestTimeTooSkewed", headers={"Date": date}).reply(call)

            with HookedServer(filled(), refuse) as server:
                async with engine_of(server.url) as engine:
                    assert (await failure_of(engine, CALLS["GetObjectAcl"])).code == "RequestTimeTooSkewed"
                    assert (await failure_of(engine, CALLS["HeadObject"])).code == "403"


class Vending(BaseHTTPRequestHandler):
    """A container's credentials agent, which gives other credentials each time."""

    protocol_version = "HTTP/1.1"
    handed_out = 0

    def do_GET(self) -> None:
        type(self).handed_out += 1
        expiry = (datetime.now(UTC) + timedelta(hours=6)).strftime("%Y-%m-%dT%H:%M:%SZ")
        body = (
            f'{{"AccessKeyId": "AK{self.handed_out}", "SecretAccessKey": "secret", "Token": "T{self.handed_out}",'
            f' "Expiration": "{expiry}"}}'
        ).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def vending(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    Vending.handed_out = 0
    server = ThreadingHTTPServer(("127.0.0.1", 0), Vending)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"http://127.0.0.1:{server.server_port}/credentials")
    yield
    server.shutdown()
    server.server_close()
    thread.join()


def refusing_the_first(code: str) -> Callable[[Call], Reply | None]:
    return lambda call: Refused(400, code).reply(call) if call.headers["x-amz-security-token"] == "T1" else None


@pytest.mark.usefixtures("vending")
class TestCredentials:
    @pytest.mark.parametrize("operation", ["ListObjectsV2", "GetObjectAcl", "GetObject"])
    async def test_expired_before_their_time_are_renewed(self, operation: str) -> None:
        with HookedServer(filled(), refusing_the_first("ExpiredToken")) as server:
            async with engine_of(server.url) as engine:
                failure = await failure_of(engine, CALLS[operation])
                assert (failure.code, is_transient(failure)) == (CREDENTIALS_RENEWED, True)
                for call in CALLS.values():
                    await call(engine)
            assert {sent.headers["x-amz-security-token"] for sent in server.calls[1:]} == {"T2"}


class TestWhatCannotBeSent:
    async def test_a_key_that_has_no_utf_8(self) -> None:
        with StubServer(filled()) as server:
            async with engine_of(server.url) as engine:
                for read in (
                    lambda: engine.get_acl("\ud800", None),
                    lambda: engine.head("\ud800", None, checksum=False),
                    lambda: engine.get_acl("key", "\ud800"),
                ):
                    with pytest.raises(CallFailed) as caught:
                        await read()
                    assert caught.value.code == "Unsignable"
                with pytest.raises(CallFailed) as caught:
                    async with engine.get("key", None, "caf\u00e9\r\nx: y"):
                        pass
                assert caught.value.code == "Unsignable"
            assert server.requests == []


async def test_another_environment_is_another_place(
    monkeypatch: pytest.MonkeyPatch, bucket: StubBucket, stub: StubServer
) -> None:
    """The endpoint and the server are cached for the next run, but not for a run with other settings."""
    bucket.put("key", b"x")
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", stub.url)
    connection = Connection(bucket=BUCKET, region="us-east-1", concurrency=1)
    for _ in range(2):
        async with open_engine(connection) as engine:
            await CALLS["HeadObject"](engine)
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:1")
    async with open_engine(connection) as engine:
        assert (await failure_of(engine, CALLS["HeadObject"])).code == "ConnectionError"
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "no url")
    with pytest.raises(UsageError):
        async with open_engine(connection):
            pass
    assert stub.count("HeadObject") == 2
