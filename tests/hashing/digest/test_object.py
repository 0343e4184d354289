"""Hashing: one pass, the listed version, every byte counted, and a bound on objects in flight."""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections.abc import Iterator
from typing import Any

import pytest

from auditor.aio.budget import InFlightBudget
from auditor.errors import CallFailed, CredentialsError
from auditor.hashing.digest.digester import InlineExecutor
from auditor.hashing.digest.object import hash_object, hash_patiently, hash_threads
from auditor.hashing.digest.options import HashOptions
from auditor.hashing.digest.result import Failed, Hashed, Superseded, Unhashable
from auditor.hashing.queue.message import HashTask
from auditor.model.digest import ALGORITHMS
from tests.conformance.memory import MemoryBody
from tests.support.fakes.hashing import OneObject, no_pause

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


async def test_several_digests_in_one_pass_over_any_chunks() -> None:
    known = {name: hashlib.new(name, DATA).hexdigest() for name in ("sha256", "sha512", "sha1", "md5")}
    for buffer_size in (1000, 65_536, 300_000, len(DATA), 2 * len(DATA)):
        engine = holding()
        result = await hash_object(engine, TASK, ALGORITHMS, HashOptions(buffer_size=buffer_size))
        assert result == Hashed(TASK, known | {"crc64nvme": CRC64NVME_OF_DATA}, len(DATA)), buffer_size
        assert len(engine.asked) == 1
        assert engine.body.largest <= buffer_size
    empty = HashTask("key", None, "etag", 0)
    assert await hash_object(holding(b""), empty, ["sha256"]) == Hashed(empty, {"sha256": hashlib.sha256().hexdigest()})


async def test_get_names_the_listed_version() -> None:
    for version, asked in ((None, (None, "etag")), ("v1", ("v1", None)), ("null", ("null", "etag"))):
        engine = holding()
        await hash_object(engine, HashTask("key", version, "etag", len(DATA)), ["md5"])
        assert engine.asked == [("key", *asked)]


async def test_answer_that_is_not_of_the_listed_object_is_not_hashed() -> None:
    seven = HashTask("key", None, "etag", 7)
    for engine, task, expected in (
        (holding(etag="newer"), TASK, Superseded(TASK, "Overwritten")),
        (holding(), seven, Failed(seven, "SizeDiffers", retryable=False)),
        (OneObject(MemoryBody(DATA, len(DATA) - 1)), TASK, Failed(TASK, "SizeDiffers", retryable=False)),
    ):
        assert (await hash_object(engine, task, ["md5"]), engine.body.largest) == (expected, 0)
    goes_on = OneObject(MemoryBody(DATA + b"x", len(DATA)))
    assert await hash_object(goes_on, TASK, ["md5"]) == Failed(TASK, "ByteCount", retryable=False)


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


async def test_credentials_that_fail_every_object_are_raised() -> None:
    for code in ("ExpiredToken", "InvalidAccessKeyId", "RequestTimeTooSkewed"):
        with pytest.raises(CredentialsError):
            await hash_object(failing((code, 403)), TASK, ["md5"])


async def test_only_passing_failures_are_tried_again_in_place() -> None:
    for codes, calls in (
        ([("SlowDown", 503), ("Timeout", 0)], 3),
        ([("SlowDown", 503)] * 9, 3),
        ([("AccessDenied", 403)], 1),
    ):
        engine = failing(*codes)
        result = await hash_patiently(engine, TASK, ["md5"], HashOptions(sleep=no_pause))
        assert (isinstance(result, Hashed), len(engine.asked)) == (len(codes) == 2, calls)


async def test_a_share_of_one_core_hashes_on_the_loop_itself() -> None:
    for memory, here in (("1769", True), ("128", True), ("1770", False), ("", False)):
        with hash_threads({"AWS_LAMBDA_FUNCTION_MEMORY_SIZE": memory}) as executor:
            assert isinstance(executor, InlineExecutor) is here
            result = await hash_object(holding(), TASK, ["md5"], HashOptions(executor=executor, buffer_size=65_536))
        assert result == Hashed(TASK, {"md5": hashlib.md5(DATA).hexdigest()}, len(DATA))


async def test_pauses_between_attempts_double_up_to_fifteen_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(random, "uniform", lambda least, most: most)
    pauses: list[float] = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    engine = failing(*[("SlowDown", 503)] * 9)
    await hash_patiently(engine, TASK, ["md5"], HashOptions(sleep=pause, attempts=9))
    assert pauses == [0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 15.0, 15.0]


async def test_permits_bound_the_objects_and_bytes_in_flight() -> None:
    """An object that is larger than all permits passes alone; a large one weighs `most` bytes at most."""
    for objects, size, count, permits, most, expected in (
        (200, 1, 4, 10**9, 1000, (4, 4)),
        (50, 10, 100, 35, 1000, (3, 30)),
        (5, 100, 100, 35, 1000, (1, 100)),
        (6, 1000, 100, 120, 40, (3, 3000)),
    ):
        budget, running, made, done = InFlightBudget(count, permits), list[int](), list[int](), list[int]()
        peaks: list[tuple[int, int, int]] = []

        async def hash_one(task: HashTask, running: Any = running, made: Any = made, done: Any = done) -> None:
            running.append(task.size)
            peaks.append((len(running), sum(running), len(made) - len(done)))  # noqa: B023
            for _ in range(3):
                await asyncio.sleep(0)
            done.append(running.pop())

        def tasks(size: int = size, objects: int = objects, made: Any = made) -> Iterator[HashTask]:
            for number in range(objects):
                made.append(number)
                yield HashTask(f"key-{number}", None, "etag", size)

        await budget.for_each(tasks(), hash_one, most=most)
        assert (len(done), max(one[0] for one in peaks), max(one[1] for one in peaks)) == (objects, *expected)
        assert max(one[2] for one in peaks) <= expected[0] + 1, "no task is made before there is a permit for it"
        assert budget.statistics().objects == 0


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


@pytest.mark.parametrize("cancelled", [False, True])
async def test_end_of_the_work_gives_every_permit_back(cancelled: bool) -> None:
    permits, started = InFlightBudget(4, 10**9), asyncio.Event()
    tasks = (HashTask(f"key-{number}", None, "etag", 1) for number in range(100))

    async def hash_one(task: HashTask) -> None:
        started.set()
        if task.key == "key-2" and not cancelled:
            raise CredentialsError("expired")
        await asyncio.Event().wait()

    work = asyncio.create_task(permits.for_each(tasks, hash_one, most=1000))
    await started.wait()
    if cancelled:
        work.cancel()
    with pytest.raises(asyncio.CancelledError if cancelled else CredentialsError):
        await work
    await asyncio.sleep(0)
    assert permits.statistics().objects == 0
