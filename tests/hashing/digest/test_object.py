"""Hashing: one pass, the listed version, every byte counted, and a bound on objects in flight."""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from auditor.aio.budget import InFlightBudget
from auditor.errors import CallFailed, CredentialsError
from auditor.hashing.digest.digester_thread import InlineExecutor
from auditor.hashing.digest.object import hash_object, hash_patiently, hash_threads
from auditor.hashing.digest.one_pass import BUFFERS
from auditor.hashing.digest.options import HashOptions
from auditor.hashing.digest.result import Failed, Hashed, Superseded, Unhashable
from auditor.hashing.limits import BUFFER
from auditor.hashing.queue.message import HashTask
from auditor.model.digest import ALGORITHMS
from tests.conformance.memory import MemoryBody
from tests.support.fakes.hashing import OneObject

DATA = bytes(range(256)) * 4096
CRC64NVME_OF_DATA = "9a1e6681572d613b"


def holding(data: bytes = DATA, **changes: object) -> OneObject:
    body = MemoryBody(data, len(data))
    for name, value in changes.items():
        setattr(body, name, value)
    return OneObject(body)


def failing(*codes: tuple[str, int]) -> OneObject:
    engine = holding()
    engine.failures = [CallFailed("GetObject", code, status) for code, status in codes]
    return engine


TASK = HashTask("key", None, "etag", len(DATA))


async def no_pause(_: float) -> None:
    await asyncio.sleep(0)


@pytest.mark.parametrize("buffer_size", [1000, 65_536, 300_000, len(DATA), 2 * len(DATA)])
async def test_several_digests_in_one_pass_over_any_chunks(buffer_size: int) -> None:
    engine = holding()
    result = await hash_object(engine, TASK, ALGORITHMS, HashOptions(buffer_size=buffer_size))
    assert isinstance(result, Hashed)
    known = {name: hashlib.new(name, DATA).hexdigest() for name in ("sha256", "sha512", "sha1", "md5")}
    assert result.digests == known | {"crc64nvme": CRC64NVME_OF_DATA}
    assert result.bytes_read == len(DATA)
    assert len(engine.asked) == 1
    assert engine.body.largest <= buffer_size


async def test_empty_object_has_the_digest_of_nothing() -> None:
    result = await hash_object(holding(b""), HashTask("key", None, "etag", 0), ["sha256"])
    assert result == Hashed(HashTask("key", None, "etag", 0), {"sha256": hashlib.sha256().hexdigest()})


@pytest.mark.parametrize(
    ("version", "asked"),
    [(None, (None, "etag")), ("v1", ("v1", None)), ("null", ("null", "etag"))],
)
async def test_get_names_the_listed_version(version: str | None, asked: tuple[str | None, str | None]) -> None:
    engine = holding()
    await hash_object(engine, HashTask("key", version, "etag", len(DATA)), ["md5"])
    assert engine.asked == [("key", *asked)]


async def test_another_etag_in_the_answer_is_superseded_unread() -> None:
    engine = holding(etag="newer")
    assert await hash_object(engine, TASK, ["md5"]) == Superseded(TASK, "Overwritten")
    assert engine.body.largest == 0


async def test_another_size_than_the_task_says_is_not_hashed() -> None:
    task = HashTask("key", None, "etag", 7)
    assert await hash_object(holding(), task, ["md5"]) == Failed(task, "SizeDiffers", retryable=False)


async def test_another_content_length_than_the_size_is_not_hashed() -> None:
    assert await hash_object(OneObject(MemoryBody(DATA, len(DATA) - 1)), TASK, ["md5"]) == Failed(
        TASK, "SizeDiffers", retryable=False
    )


async def test_body_that_goes_on_after_its_length_is_failed() -> None:
    engine = OneObject(MemoryBody(DATA + b"x", len(DATA)))
    assert await hash_object(engine, TASK, ["md5"]) == Failed(TASK, "ByteCount", retryable=False)


@pytest.mark.parametrize(
    ("code", "status", "expected"),
    [
        ("PreconditionFailed", 412, Superseded(TASK, "Overwritten")),
        ("412", 412, Superseded(TASK, "Overwritten")),
        ("NoSuchKey", 404, Superseded(TASK, "Vanished")),
        ("NoSuchVersion", 404, Superseded(TASK, "Vanished")),
        ("MethodNotAllowed", 405, Superseded(TASK, "Vanished")),
        ("InvalidObjectState", 403, Unhashable(TASK, "archived")),
        ("InvalidRequest", 400, Unhashable(TASK, "SSE-C")),
        ("AccessDenied", 403, Failed(TASK, "AccessDenied", retryable=False)),
        ("KMS.DisabledException", 400, Failed(TASK, "KMS.DisabledException", retryable=False)),
        ("NoSuchBucket", 404, Failed(TASK, "NoSuchBucket", retryable=False)),
        ("PermanentRedirect", 301, Failed(TASK, "PermanentRedirect", retryable=False)),
        ("SlowDown", 503, Failed(TASK, "SlowDown", retryable=True, outage=True)),
        ("InternalError", 500, Failed(TASK, "InternalError", retryable=True, outage=True)),
        ("502", 502, Failed(TASK, "502", retryable=True, outage=True)),
        ("Timeout", 0, Failed(TASK, "Timeout", retryable=True, outage=True)),
        ("ConnectionError", 0, Failed(TASK, "ConnectionError", retryable=True, outage=True)),
    ],
)
async def test_failure_of_one_object_is_a_value(code: str, status: int, expected: object) -> None:
    assert await hash_object(failing((code, status)), TASK, ["md5"]) == expected


@pytest.mark.parametrize("code", ["ExpiredToken", "InvalidAccessKeyId", "RequestTimeTooSkewed"])
async def test_credentials_that_fail_every_object_are_raised(code: str) -> None:
    with pytest.raises(CredentialsError):
        await hash_object(failing((code, 403)), TASK, ["md5"])


async def test_passing_failures_are_tried_again_after_growing_pauses() -> None:
    pauses: list[float] = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    engine = failing(("SlowDown", 503), ("Timeout", 0))
    assert isinstance(await hash_patiently(engine, TASK, ["md5"], HashOptions(sleep=pause)), Hashed)
    assert len(engine.asked) == 3
    assert 0.2 <= pauses[0] <= 0.4 <= pauses[1] <= 0.8


async def test_attempts_in_place_are_bounded() -> None:
    engine = failing(*[("SlowDown", 503)] * 9)
    assert await hash_patiently(engine, TASK, ["md5"], HashOptions(sleep=no_pause)) == Failed(
        TASK, "SlowDown", retryable=True, outage=True
    )
    assert len(engine.asked) == 3


async def test_pauses_between_attempts_double_up_to_fifteen_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(random, "uniform", lambda least, most: most)
    pauses: list[float] = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    engine = failing(*[("SlowDown", 503)] * 9)
    await hash_patiently(engine, TASK, ["md5"], HashOptions(sleep=pause, attempts=9))
    assert pauses == [0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 15.0, 15.0]


async def test_denied_object_is_not_tried_again_in_place() -> None:
    engine = failing(("AccessDenied", 403))
    assert isinstance(await hash_patiently(engine, TASK, ["md5"], HashOptions(sleep=no_pause)), Failed)
    assert len(engine.asked) == 1


@pytest.mark.parametrize(("memory", "here"), [("1769", True), ("128", True), ("1770", False), ("", False)])
async def test_a_share_of_one_core_hashes_on_the_loop_itself(memory: str, here: bool) -> None:
    with hash_threads({"AWS_LAMBDA_FUNCTION_MEMORY_SIZE": memory}) as executor:
        assert isinstance(executor, InlineExecutor) is here
        result = await hash_object(holding(), TASK, ["md5"], HashOptions(executor=executor, buffer_size=65_536))
    assert isinstance(result, Hashed)
    assert result.digests == {"md5": hashlib.md5(DATA).hexdigest()}


@dataclass(slots=True)
class Gauge:
    """Replaces hashing; keeps the maxima of objects and bytes in flight."""

    now: int = 0
    most: int = 0
    bytes_now: int = 0
    most_bytes: int = 0
    done: int = 0

    async def hash_one(self, task: HashTask) -> None:
        self.now += 1
        self.bytes_now += task.size
        self.most, self.most_bytes = max(self.most, self.now), max(self.most_bytes, self.bytes_now)
        for _ in range(3):
            await asyncio.sleep(0)
        self.now -= 1
        self.bytes_now -= task.size
        self.done += 1


def stream(count: int, size: int, made: list[int] | None = None) -> Iterator[HashTask]:
    for number in range(count):
        if made is not None:
            made.append(number)
        yield HashTask(f"key-{number}", None, "etag", size)


async def test_no_more_objects_in_flight_than_permits() -> None:
    gauge = Gauge()
    permits = InFlightBudget(4, 10**9)
    await permits.for_each(stream(200, 1), gauge.hash_one, most=BUFFERS * BUFFER)
    assert (gauge.done, gauge.most, permits.statistics().objects) == (200, 4, 0)


async def test_no_more_bytes_in_flight_than_permits() -> None:
    gauge = Gauge()
    await InFlightBudget(100, 35).for_each(stream(50, 10), gauge.hash_one, most=BUFFERS * BUFFER)
    assert (gauge.done, gauge.most_bytes) == (50, 30)


async def test_object_larger_than_all_permits_passes_alone() -> None:
    gauge = Gauge()
    await InFlightBudget(100, 35).for_each(stream(5, 100), gauge.hash_one, most=BUFFERS * BUFFER)
    assert (gauge.done, gauge.most) == (5, 1)


async def test_large_object_weighs_the_buffers_of_one_stream() -> None:
    gauge = Gauge()
    await InFlightBudget(100, 120).for_each(stream(6, 1000), gauge.hash_one, most=BUFFERS * 10)
    assert (gauge.done, gauge.most) == (6, 3)


async def test_borrowed_bytes_are_free_ones_only_and_keep_others_waiting() -> None:
    permits = InFlightBudget(10, 100)
    await permits.take(40)
    assert not permits.borrow(61)
    assert permits.borrow(60)
    waiting = asyncio.create_task(permits.take(10))
    await asyncio.sleep(0)
    assert not waiting.done()
    assert not permits.borrow(0), "whoever waits goes first"
    permits.repay(60)
    await waiting
    assert permits.statistics().objects == 2


async def test_tasks_are_taken_no_faster_than_permits_are_returned() -> None:
    made: list[int] = []
    ahead: list[int] = []
    gauge = Gauge()

    async def hash_one(task: HashTask) -> None:
        await gauge.hash_one(task)
        ahead.append(len(made) - gauge.done)

    await InFlightBudget(4, 10**9).for_each(stream(100, 1, made), hash_one, most=BUFFERS * BUFFER)
    assert max(ahead) <= 5


async def test_error_ends_the_others_and_gives_every_permit_back() -> None:
    permits = InFlightBudget(4, 10**9)

    async def hash_one(task: HashTask) -> None:
        if task.key == "key-2":
            raise CredentialsError("expired")
        await asyncio.Event().wait()

    with pytest.raises(CredentialsError):
        await permits.for_each(stream(100, 1), hash_one, most=BUFFERS * BUFFER)
    await asyncio.sleep(0)
    assert permits.statistics().objects == 0


async def test_cancelled_in_mid_hash_gives_every_permit_back() -> None:
    permits = InFlightBudget(4, 10**9)
    started = asyncio.Event()

    async def hash_one(_: HashTask) -> None:
        started.set()
        await asyncio.Event().wait()

    work = asyncio.create_task(permits.for_each(stream(100, 1), hash_one, most=BUFFERS * BUFFER))
    await started.wait()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    await asyncio.sleep(0)
    assert permits.statistics().objects == 0
