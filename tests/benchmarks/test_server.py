"""The benchmarks' server answers the measured calls as S3 does, with the latency and refusals of its settings."""

from __future__ import annotations

import asyncio
import hashlib
import ssl
import threading
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as SdkCredentials

from auditor.aws.connection import Connection
from auditor.errors import CallFailed
from auditor.model.object import ALL_USERS, Grant
from auditor.s3.engines import ENGINES
from auditor.s3.engines.base import Engine, ListQuery, Span
from benchmarks.clients import bare, floor, golang, rust
from benchmarks.clients.foreground import Foreground
from benchmarks.clients.hashers import article, ours
from benchmarks.clients.signing import Credentials, object_request, sign
from benchmarks.clients.transfers import DOWN, UP
from benchmarks.clients.transfers import calls as transfer
from benchmarks.clients.verifying import verified
from benchmarks.meter import Meter, ask
from benchmarks.server import objects, tls
from benchmarks.server.answers import Answers
from benchmarks.server.behaviour import Behaviour, Gate
from tests.s3.engines.common import list_all, pieces, read
from tests.support.servers.http_server import listening
from tests.support.servers.stub_faults import Tokens


@pytest.fixture
def gate() -> Gate:
    return Gate(Behaviour(objects=2500))


@pytest.fixture
async def url(gate: Gate) -> AsyncIterator[str]:
    async with listening(Answers(gate)) as where:
        yield where


@pytest.fixture
def url_of_thread() -> Iterator[str]:
    """A server in a thread of its own, for clients that block."""
    with asyncio.Runner() as runner:
        started: Future[str] = Future()
        stop = asyncio.Event()

        async def serve() -> None:
            async with listening(Answers(Gate(Behaviour()))) as where:
                started.set_result(where)
                await stop.wait()

        thread = threading.Thread(target=runner.run, args=(serve(),))
        thread.start()
        yield started.result(10)
        runner.get_loop().call_soon_threadsafe(stop.set)
        thread.join(10)


@asynccontextmanager
async def opened(name: str, url: str) -> AsyncIterator[Engine]:
    connection = Connection(bucket=objects.BUCKET, region="us-east-1", endpoint_url=url, concurrency=2)
    async with ENGINES[name](connection) as engine:
        yield engine


@pytest.fixture(params=ENGINES)
async def engine(request: pytest.FixtureRequest, url: str) -> AsyncIterator[Engine]:
    async with opened(request.param, url) as made:
        yield made


async def test_every_page_of_the_listing_holds_what_is_computed(engine: Engine) -> None:
    refs, _, pages = await list_all(engine, ListQuery())
    assert [ref.key for ref in refs] == [objects.key_of(number) for number in range(2500)]
    assert pages == 3
    assert (refs[7].etag, refs[7].size, refs[7].owner) == (objects.etag_of(7), objects.size_of(7), objects.OWNER)


async def test_a_listing_begins_after_a_key_and_within_a_prefix(engine: Engine) -> None:
    after, _, _ = await list_all(engine, ListQuery(start_after=objects.key_of(2490)))
    assert [ref.key for ref in after] == [objects.key_of(number) for number in range(2491, 2500)]
    folder = objects.key_of(1000).rpartition("/")[0] + "/"
    within, _, _ = await list_all(engine, ListQuery(prefix=folder))
    assert [ref.key for ref in within] == [objects.key_of(number) for number in range(1000, 2000)]


async def test_a_head_agrees_with_the_listing(engine: Engine) -> None:
    head = await engine.head(objects.key_of(7), None, checksum=False)
    assert (head.etag, head.content_length) == (objects.etag_of(7), objects.size_of(7))
    assert head.server_side_encryption == "AES256"
    assert head.metadata == {"team": "warehouse", "build": "7", "source": "export"}


async def test_every_thousandth_object_is_public(engine: Engine) -> None:
    owners = Grant(objects.OWNER, "FULL_CONTROL")
    assert (await engine.get_acl(objects.key_of(1000), None)).grants == (owners, Grant(ALL_USERS, "READ"))
    assert (await engine.get_acl(objects.key_of(1001), None)).grants == (owners,)


async def test_a_body_and_a_span_of_it_are_the_bytes_that_its_name_says(engine: Engine) -> None:
    size = 2 * len(objects.BLOCK) + 5
    body = await read(engine, f"{objects.SIZED}{size}", 1 << 20)
    assert body == bytes(objects.body_of(size))
    async with engine.get(f"{objects.SIZED}{size}", None, None, Span(len(objects.BLOCK) - 3, size - 1)) as span:
        assert b"".join([piece async for piece in pieces(span, 1 << 20)]) == body[len(objects.BLOCK) - 3 :]


async def test_calls_above_the_rate_are_refused_and_counted_by_caller(url: str, gate: Gate) -> None:
    gate.set({"rate": 0.001, "burst": 2000.0})
    async with opened("aioboto3", url) as engine:
        for _ in range(2):
            await engine.get_acl(objects.key_of(1), None)
        with pytest.raises(CallFailed) as caught:
            await engine.get_acl(objects.key_of(1), None)
    assert caught.value.code == "SlowDown"
    assert sum(gate.counters.refused["unknown"].values()) == 1


def test_a_full_bucket_gives_its_burst_and_then_its_rate() -> None:
    now = [100.0]
    bucket = Tokens(10.0, 10.0, lambda: now[0])
    assert [bucket.take() for _ in range(11)] == [True] * 10 + [False]
    now[0] += 0.35
    assert [bucket.take() for _ in range(4)] == [True] * 3 + [False]
    now[0] += 60
    assert [bucket.take() for _ in range(11)] == [True] * 10 + [False]


async def test_bare_aiohttp_and_the_floor_are_answered(url: str, gate: Gate) -> None:
    async with bare.opened(url, "", 1) as client:
        await client.object(objects.key_of(3), ("acl", "head"))
        with pytest.raises(RuntimeError, match="404"):
            await client.object("nowhere", ("head",))
    made = floor.Floor(url, None, 2)
    await made.open()
    await made.run(floor.prepared(url, objects.BUCKET, [objects.key_of(n) for n in range(9)], ("acl", "head"), 0.0))
    made.close()
    assert gate.counters.answered == {"acl": 10, "head": 10}


def test_obstore_makes_one_head_of_each_object(url_of_thread: str) -> None:
    found = rust.calls(
        meter := Meter(), url=url_of_thread, authority="", operations=["head"], concurrency=2, objects=30
    )
    assert (found["calls"], len(meter.laps)) == (30, 1)
    assert ask(url_of_thread, "GET", "/-/counters")["answered"] == {"head": 30 + rust.WARM_UP * 2}
    with pytest.raises(ValueError, match="no call for"):
        rust.calls(Meter(), url=url_of_thread, authority="", operations=["acl"], concurrency=2, objects=30)


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The program with the SDK for Go, of modules that are on this machine."""
    monkeypatch.setenv("GOPROXY", "off")
    missing: list[str] = []
    built = golang.build(missing.append)
    if built is None:
        pytest.skip(missing[0])
    return [str(built)]


@pytest.mark.slow
def test_the_sdk_for_go_makes_both_calls_of_each_object(program: list[str], url_of_thread: str) -> None:
    def measured(objects: int) -> tuple[dict[str, Any], Meter]:
        meter = Meter()
        both = ["acl", "head"]
        found = golang.calls(
            meter, program=program, url=url_of_thread, authority="", operations=both, concurrency=2, objects=objects
        )
        return found, meter

    found, meter = measured(30)
    assert (found["calls"], len(meter.laps)) == (60, 1)
    assert found["versions"].keys() == {"Go", "service/s3"}
    answered = 30 + golang.WARM_UP * 2
    assert ask(url_of_thread, "GET", "/-/counters")["answered"] == {"acl": answered, "head": answered}

    ask(url_of_thread, "PUT", "/-/behaviour", {"objects": 29})
    with pytest.raises(RuntimeError, match="ended with 1"):
        measured(30)


@pytest.mark.slow
async def test_the_sdk_for_go_trusts_the_authority_alone(program: list[str], tmp_path: Path) -> None:
    authority, other = tls.make_certificates(tmp_path), tmp_path / "other"
    other.mkdir()
    tls.make_certificates(other)

    def measure(trusted: Path) -> dict[str, Any]:
        where: dict[str, Any] = {"url": url, "authority": str(trusted), "operations": ["head"]}
        return golang.calls(Meter(), program=program, concurrency=1, objects=3, **where)

    async with listening(Answers(Gate(Behaviour())), tls.server_context(tmp_path)) as url:
        assert (await asyncio.to_thread(measure, authority))["calls"] == 3
        with pytest.raises(RuntimeError, match="ended with 1"):
            await asyncio.to_thread(measure, other / "ca.pem")


async def test_the_certificate_is_good_for_this_machine_and_its_authority_alone(tmp_path: Path) -> None:
    authority = tls.make_certificates(tmp_path)
    async with listening(Answers(Gate(Behaviour())), tls.server_context(tmp_path)) as url:
        async with bare.opened(url, str(authority), 1) as client:
            await client.object(objects.key_of(1), ("head",))
        port, unaware = urlsplit(url).port or 0, ssl.create_default_context()
        with pytest.raises(ssl.SSLCertVerificationError):
            await asyncio.get_running_loop().create_connection(asyncio.Protocol, "127.0.0.1", port, ssl=unaware)


@pytest.mark.parametrize("key", ["plain", "a b/ü+%~.txt", objects.key_of(1)])
@pytest.mark.parametrize("operation", ["head", "acl"])
def test_the_bare_signature_is_the_sdks(operation: str, key: str) -> None:
    method, path, query = object_request(operation, "audited", key)
    mine = sign(Credentials("access", "secret", "eu-west-1"), method, "h:1", path, query, time.time())
    theirs = AWSRequest(method, f"http://h:1{path}{'?' + query if query else ''}", headers={"Host": "h:1"})
    signer = S3SigV4Auth(SdkCredentials("access", "secret"), "s3", "eu-west-1")
    for _ in range(3):  # the SDK signs with its own clock, which may tick between the two
        signer.add_auth(theirs)
        if theirs.headers["X-Amz-Date"] == mine["x-amz-date"]:
            break
        mine = sign(Credentials("access", "secret", "eu-west-1"), method, "h:1", path, query, time.time())
    assert mine["Authorization"] == theirs.headers["Authorization"]


async def test_users_are_timed_from_the_moment_when_a_call_is_due(url: str, gate: Gate) -> None:
    gate.set({"objects": 1, "latency": 0.02})
    requests = floor.prepared(url, objects.BUCKET, [objects.key_of(0)], ("head",), 0.0)
    users = Foreground(requests, rate=200.0)
    await users.open(url, None, 1)
    users.begin()
    while sum(map(len, users.latencies.values())) < 5:  # noqa: ASYNC110 - they tell nobody
        await asyncio.sleep(0.01)
    users.close()
    found = [latency for second in sorted(users.latencies) for latency in users.latencies[second]]
    assert found == sorted(found)  # one connection at 50 a second falls behind 200: each call waits longer
    assert users.failed == 0


@pytest.mark.parametrize("way", [*UP, *DOWN])
def test_an_object_moves_every_way(way: str, url_of_thread: str) -> None:
    meter = Meter()
    transfer(meter, url=url_of_thread, way=way, size=9_000_000, times=1)
    assert len(meter.laps) == 2


def test_the_hashers_agree_with_each_other_and_with_the_bytes(url_of_thread: str) -> None:
    size = 3_000_000
    found = [hasher(Meter(), url=url_of_thread, size=size, chunk=1)["digest"] for hasher in (ours, article)]
    assert found == [hashlib.sha1(objects.body_of(size)).hexdigest()] * 2


@pytest.mark.parametrize("ledger", ["dynamodb", "sqlite"])
def test_every_object_of_a_measured_verification_matches(
    url_of_thread: str, ledger: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY"):
        monkeypatch.setenv(f"AWS_{name}", "testing")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    ask(url_of_thread, "PUT", "/-/behaviour", {"objects": 30, "size": 1000})
    verified(meter := Meter(), url=url_of_thread, ledger=ledger, objects=30, size=1000)
    assert len(meter.laps) == 1
    answered = ask(url_of_thread, "GET", "/-/counters")["answered"]
    assert answered.get("UpdateItem", 0) == (ledger == "dynamodb") * (2 * (30 + 10) + 1)
