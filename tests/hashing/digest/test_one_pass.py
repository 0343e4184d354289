"""One pass over one object: every size, cuts at every kind of point, pauses, several streams, bounded memory."""

from __future__ import annotations

import asyncio
import itertools
import random
import sys
import tracemalloc
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest

from auditor.aio.budget import InFlightBudget
from auditor.errors import CallFailed, LeaseLostError, UsageError
from auditor.hashing.digest import digester as digesting
from auditor.hashing.digest import one_pass as onepass
from auditor.hashing.digest import resumable
from auditor.hashing.digest.digester import INLINE
from auditor.hashing.digest.object import hash_object, hash_patiently
from auditor.hashing.digest.options import HashOptions
from auditor.hashing.digest.reader import HARDLY
from auditor.hashing.digest.result import Failed, Hashed, Mismatch, Paused, Result, Superseded, Unhashable
from auditor.hashing.digest.streams import MEMORY, Tuner, layout
from auditor.hashing.limits import MIB
from auditor.s3.engines.base import Body, Span
from auditor.s3.paced_reads import PacedReads
from tests.support.fakes.hashing import CountedRate
from tests.support.generated import Cut, Generated, digests_of, no_pause

KNOWN = ("sha256", "sha1", "md5")
CRC = "crc64nvme"
BIG = 5 * MIB + 12_345


THREADS = ThreadPoolExecutor(2)


async def run(
    engine: Generated, *algorithms: str, checkpoint: Mapping[str, Any] | None = None, **options: Any
) -> Result:
    """Hash the engine's object: its sha256, and on two threads, unless the test says otherwise."""
    given = HashOptions(**{"bucket": "bucket", "executor": THREADS, "sleep": no_pause, **options})
    return await hash_object(engine, engine.task, algorithms or ["sha256"], given, checkpoint=checkpoint)


def hashed(result: object, engine: Generated, *algorithms: str) -> Hashed:
    """The result, after its digests were compared with hashlib's of the whole."""
    assert isinstance(result, Hashed), result
    assert result.digests == digests_of(engine.size, *algorithms or ["sha256"])
    assert engine.now == 0, "every body was closed"
    return result


async def test_object_of_any_size() -> None:
    """A small object is finished whatever the stop says, and a stop after the last byte is no pause."""
    sizes = [0, 1, 63, 64, 65, INLINE - 1, INLINE, INLINE + 1, MIB - 1, MIB, MIB + 1, 3 * MIB, 3 * MIB + 1, BIG]
    for size, stop in itertools.product(sizes, (None, lambda: False)):
        engine = Generated(size)
        stop = (lambda: True) if stop and size <= INLINE else after(3) if stop and size == 3 * MIB else stop
        result = await run(engine, *KNOWN, stop=stop)
        assert hashed(result, engine, *KNOWN).bytes_read == size
        assert engine.calls == [(None, "etag")]


@pytest.mark.parametrize("code", ["ConnectionError", "SlowDown", None])
@pytest.mark.parametrize("size", [5000, BIG])
async def test_body_that_is_cut_goes_on_at_its_last_byte(code: str | None, size: int) -> None:
    points = sorted({0, 1, 63, 64, size // 3, size // 2, min(MIB, size - 2), size - 1})
    engine = Generated(size, answers=[Cut(point, code, absolute=True) for point in points])
    assert hashed(await run(engine, *KNOWN), engine, *KNOWN).bytes_read == size
    spans = [span for span, _ in engine.calls]
    assert spans == [None, None, *(f"bytes={point}-{size - 1}" for point in points[1:])]
    assert {etag for _, etag in engine.calls} == {"etag"}


async def test_cuts_anywhere() -> None:
    for seed in range(6):
        chance = random.Random(seed)
        engine = Generated(BIG)
        for _ in range(chance.randrange(1, 40)):
            place = chance.choice([0, 1, chance.randrange(BIG // 4)])
            engine.answers += [Cut(place, chance.choice(["Timeout", None])), Cut(chance.randrange(1, BIG // 2))]
        options: dict[str, Any] = {"streams": chance.choice([1, 3]), "buffer_size": chance.choice([1000, 65_536, MIB])}
        hashed(await run(engine, **options), engine)


@pytest.mark.parametrize("refusal", [None, CallFailed("GetObject", "InternalError", 500)])
@pytest.mark.parametrize("streams", [1, 4])
async def test_read_that_brings_no_byte_is_given_up(streams: int, refusal: CallFailed | None) -> None:
    pauses: list[float] = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)
        await asyncio.sleep(0)

    engine = Generated(16 * MIB, answers=[Cut(100_000), *[refusal or Cut(0)] * 99])
    result = await run(engine, "md5", executor=None, sleep=pause, streams=streams)
    assert result == Failed(engine.task, refusal.code if refusal else "ConnectionError", retryable=False, outage=True)
    assert engine.now == 0
    if streams == 1:
        assert len(engine.calls) == 6
        assert all(0.2 * 2**nth / 2 <= paused <= 0.2 * 2**nth for nth, paused in enumerate(pauses, 1))


async def test_fruitless_calls_count_anew_after_progress() -> None:
    vain = [Cut(0)] * 4
    engine = Generated(1000, answers=[Cut(100), *vain, Cut(60), *vain, Cut(60), *vain])
    hashed(await run(engine, "md5", executor=None), engine, "md5")


async def test_body_that_brings_hardly_a_byte_a_call_is_given_up_and_a_slow_one_is_not() -> None:
    """A small object may come in sixteenths, and a large one in pieces of HARDLY."""
    slow: list[tuple[int, int, str | None, int]] = [
        (4096, 256, None, 16),
        (2 * MIB, HARDLY, "Timeout", 2 * MIB // HARDLY),
    ]
    slow += [(4096, 200, None, 5), (4096, 0, None, 5), (2 * MIB, 1, "Timeout", 5), (2 * MIB, HARDLY - 1, "Timeout", 5)]
    for size, brought, code, calls in slow:
        engine = Generated(size, answers=[Cut(brought, code) for _ in range(99)])
        result = await run(engine, "md5", executor=None)
        assert len(engine.calls) == calls, (size, brought)
        if calls > 5:
            hashed(result, engine, "md5")
        else:
            assert result == Failed(engine.task, code or "ByteCount", retryable=False, outage=code is not None)
    for streams, code in itertools.product((1, 4), (None, "ConnectionError")):
        engine = Generated(23_000_000, answers=[Cut(50, code) for _ in range(1000)])
        result = await hash_patiently(engine, engine.task, ["md5"], HashOptions(sleep=no_pause, streams=streams))
        assert result == Failed(engine.task, code or "ByteCount", retryable=False, outage=code is not None)
        assert len(engine.calls) <= 5 * streams


@pytest.mark.parametrize("streams", [1, 4])
async def test_failure_in_mid_read_is_a_value(streams: int) -> None:
    """tests/hashing/digest/test_object.py has every failure, of the first call."""
    for code, status, expected in (
        ("PreconditionFailed", 412, partial(Superseded, code="Overwritten")),
        ("NoSuchKey", 404, partial(Superseded, code="Vanished")),
        ("InvalidObjectState", 403, partial(Unhashable, code="archived")),
        ("Malformed", 206, partial(Failed, code="Malformed", retryable=False)),
    ):
        engine = Generated(16 * MIB, answers=[Cut(2 * MIB), CallFailed("GetObject", code, status)])
        assert (await run(engine, "md5", streams=streams), engine.now) == (expected(engine.task), 0)


@pytest.mark.parametrize("streams", [1, 4])
async def test_object_that_is_overwritten_in_mid_read(streams: int) -> None:
    class Careless(Generated):
        """Ignores If-Match: the ETag of its answer tells."""

        def get(self, key: str, version_id: str | None, etag: str | None, span: Any = None) -> Any:
            return super().get(key, version_id, None, span)

    for kind in (Generated, Careless):
        engine = kind(16 * MIB, etags=["etag", "newer"], answers=[Cut(3 * MIB)])
        assert await run(engine, "md5", streams=streams) == Superseded(engine.task, "Overwritten")


async def test_every_call_takes_its_turn() -> None:
    rate = CountedRate()
    engine = Generated(32 * MIB, answers=[None, Cut(5), Cut(9)])
    reads = PacedReads(engine, rate)
    options = HashOptions(executor=THREADS, streams=4, sleep=no_pause)
    hashed(await hash_object(reads, engine.task, ["md5"], options), engine, "md5")
    assert rate.turns == reads.calls == len(engine.calls) == 6


# Pauses and checkpoints.


def after(buffers: int) -> Callable[[], bool]:
    """Return true at the given question."""
    asked = itertools.count(1)
    return lambda: next(asked) >= buffers


@pytest.mark.parametrize("streams", [1, 3])
async def test_many_pauses_in_one_object(streams: int) -> None:
    engine = Generated(60 * 65_536 + 77)
    checkpoint: Mapping[str, Any] | None = None
    pauses = 0
    while True:
        now = streams if pauses % 2 else 1
        options = {"buffer_size": 65_536, "stop": after(1), "streams": now}
        result = await run(engine, *KNOWN, CRC, checkpoint=checkpoint, **options)
        if not isinstance(result, Paused):
            break
        pauses += 1
        assert result.checkpoint is not None
        assert result.bytes == result.checkpoint["bytes"]
        assert result.bytes % 64 == 0
        checkpoint = result.checkpoint
    assert isinstance(result, Hashed)
    assert result.digests == digests_of(engine.size, *KNOWN) | {CRC: await crc_of(engine)}
    assert pauses == 60 if streams == 1 else pauses > 2


async def paused(engine: Generated) -> Mapping[str, Any]:
    """The checkpoint after two buffers."""
    result = await run(engine, stop=after(2))
    assert isinstance(result, Paused)
    assert result.bytes == 2 * MIB
    assert result.checkpoint is not None
    engine.calls.clear()
    return result.checkpoint


async def test_continued_object_is_read_from_its_checkpoint_only() -> None:
    engine = Generated(BIG)
    checkpoint = await paused(engine)
    result = await run(engine, checkpoint=checkpoint)
    assert engine.calls == [(f"bytes={2 * MIB}-{BIG - 1}", "etag")]
    assert BIG <= hashed(result, engine).bytes_read <= BIG + 3 * MIB
    engine.etags = ["newer"]
    assert await run(engine, checkpoint=checkpoint) == Superseded(engine.task, "Overwritten")


@pytest.mark.parametrize("change", [{"states": {"sha256": "0" * 64}}, {"seal": "x"}], ids=["states", "seal"])
async def test_tampered_checkpoint_is_refused_and_the_object_hashed_from_its_start(
    change: dict[str, object], caplog: pytest.LogCaptureFixture
) -> None:
    engine = Generated(BIG)
    result = await run(engine, checkpoint={**await paused(engine), **change})
    assert engine.calls == [(None, "etag")]
    hashed(result, engine)
    assert "from its start: the checkpoint" in caplog.text


async def test_pause_without_resumable_digests_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Generated(BIG)
    before = await paused(engine)
    monkeypatch.setattr(resumable, "refusal", lambda: "no libcrypto here")
    result = await run(engine, stop=after(2))
    assert result == Paused(engine.task, None, 2 * MIB, "no libcrypto here", 2 * MIB)
    hashed(await run(engine, checkpoint=before), engine)


async def test_stop_is_heard_while_a_read_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onepass, "POLL", 0.01)
    stopping = False
    waits = itertools.chain([0.0] * 3, itertools.repeat(3600.0))

    def wait() -> float:
        nonlocal stopping
        seconds = next(waits)
        stopping = seconds > 0
        return seconds

    engine = Generated(BIG, pause=wait)
    result = await asyncio.wait_for(run(engine, stop=lambda: stopping), 30)
    assert isinstance(result, Paused)
    assert (result.bytes, engine.now) == (3 * MIB, 0)


@pytest.mark.parametrize("goes_on", [False, True])
async def test_stop_is_heard_while_nothing_answers(monkeypatch: pytest.MonkeyPatch, goes_on: bool) -> None:
    class Silent(Generated):
        @asynccontextmanager
        async def _get(self, etag: str | None, span: Span | None) -> AsyncIterator[Body]:
            await asyncio.sleep(3600)
            async with super()._get(etag, span) as body:
                yield body

    checkpoint = await paused(Generated(BIG)) if goes_on else None
    monkeypatch.setattr(onepass, "POLL", 0.01)
    engine = Silent(BIG)
    result = await asyncio.wait_for(run(engine, checkpoint=checkpoint, stop=lambda: True), 30)
    assert result == Paused(engine.task, checkpoint, checkpoint["bytes"] if checkpoint else 0)


async def test_small_object_takes_no_thread() -> None:
    engine, large = Generated(INLINE), Generated(INLINE + 1)
    refusing = Executor()  # it refuses all work
    hashed(await run(engine, executor=refusing), engine)
    with pytest.raises(NotImplementedError):
        await run(large, executor=refusing)


@pytest.mark.parametrize("streams", [1, 4])
async def test_each_saved_checkpoint_leads_to_the_same_digest(streams: int) -> None:
    engine = Generated(16 * MIB)
    saved: list[Mapping[str, Any]] = []

    async def save(checkpoint: Mapping[str, Any] | None) -> None:
        assert checkpoint is not None
        saved.append(checkpoint)

    hashed(await run(engine, save=save, save_seconds=0.0, streams=streams), engine)
    assert len(saved) >= 3
    assert [one["bytes"] for one in saved] == sorted({one["bytes"] for one in saved})
    for one in saved:
        hashed(await run(engine, checkpoint=one), engine)


@pytest.mark.parametrize("streams", [1, 4])
async def test_lost_lease_ends_the_hashing(streams: int) -> None:
    async def save(_: Mapping[str, Any] | None) -> None:
        raise LeaseLostError("another has it")

    engine = Generated(16 * MIB)
    permits = InFlightBudget(1, MEMORY)
    with pytest.raises(LeaseLostError):
        await run(engine, save=save, save_seconds=0.0, streams=streams, memory=permits, stop=lambda: False)
    assert engine.now == 0
    assert permits.borrow(MEMORY), "nothing is borrowed any more"


# What S3 stored.


async def crc_of(engine: Generated) -> str:
    result = await run(engine, CRC)
    assert isinstance(result, Hashed)
    return result.digests[CRC]


@pytest.mark.parametrize("name", ["sha256", CRC])
async def test_stored_digest_that_differs_is_a_mismatch(name: str) -> None:
    engine = Generated(BIG)
    ours = {CRC: await crc_of(engine), **digests_of(BIG, "sha256")}
    engine.stored = {"crc32": "00000000", **ours}
    hashed(await run(engine, "sha256", "md5"), engine, "sha256", "md5")
    engine.stored = ours | {name: "0" * len(ours[name])}
    assert await run(engine) == Mismatch(engine.task, name, ours[name], engine.stored[name], BIG)


async def test_stored_digest_is_compared_after_a_pause_too() -> None:
    engine = Generated(BIG, stored={CRC: "0" * 16, "crc32": "00000000"})
    result = await run(engine, checkpoint=await paused(engine))
    assert isinstance(result, Mismatch)
    assert engine.calls == [(f"bytes={2 * MIB}-{BIG - 1}", "etag")], "it is not read from its start"
    assert (result.algorithm, result.ours) == (CRC, await crc_of(Generated(BIG)))


async def test_without_awscrt_crc64nvme_is_not_compared_and_a_request_for_it_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = Generated(BIG, stored={CRC: "0" * 16})
    checkpoint = await paused(engine)
    monkeypatch.setitem(sys.modules, "awscrt.checksums", None)
    digesting._crc64nvme.cache_clear()
    try:
        hashed(await run(engine, checkpoint=checkpoint), engine)
        with pytest.raises(UsageError, match=r"pip install '\.\[crc64\]'"):
            await run(engine, CRC)
    finally:
        digesting._crc64nvme.cache_clear()


# Several streams.


@pytest.mark.parametrize("seed", range(2))
async def test_streams_with_shuffled_latencies_hash_in_order_with_one_body_each(seed: int) -> None:
    chance = random.Random(seed)
    engine = Generated(40 * MIB + 1, pause=lambda: chance.choice([0.0, 0.0, 0.001, 0.01]))
    streams = chance.choice([2, 3, 5, 8, 16])
    hashed(await run(engine, streams=streams), engine)
    assert engine.most == streams
    assert engine.calls[0] == (None, "etag")
    assert [etag for _, etag in engine.calls] == ["etag"] * -(-engine.size // layout(streams, engine.size).block)


async def test_auto_adds_streams_where_each_brings_more_and_hashes_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = iter([1, 1, 1, *[2] * 9, *[4] * 20, *[1] * 60, 8])
    monkeypatch.setattr(Tuner, "note", lambda tuner, now, count, busy: next(wanted, 8))
    engine = Generated(300 * MIB, pause=lambda: 0.002)
    hashed(await run(engine, "sha1", streams=None), engine, "sha1")
    assert engine.most == 8


async def test_streams_are_as_many_as_there_is_memory_for() -> None:
    permits = InFlightBudget(1, layout(2, 64 * MIB).memory)
    engine = Generated(64 * MIB)
    hashed(await run(engine, streams=8, memory=permits), engine)
    assert engine.most == 2
    await permits.take(1)
    engine.most = 0
    hashed(await run(engine, streams=8, memory=permits), engine)
    assert engine.most == 1


@pytest.mark.parametrize("streams", [1, 4])
async def test_cancelled_in_mid_read_closes_every_body(streams: int) -> None:
    engine = Generated(64 * MIB, pause=lambda: 0.001)
    permits = InFlightBudget(1, MEMORY)
    work = asyncio.create_task(run(engine, streams=streams, memory=permits))
    while engine.now < streams:  # noqa: ASYNC110 - the fake has no event for it
        await asyncio.sleep(0)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert engine.now == 0
    assert permits.borrow(MEMORY)


async def test_error_of_a_digest_is_raised_and_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(digester: object, data: memoryview) -> None:
        raise MemoryError("no room")

    monkeypatch.setattr(digesting.Digester, "update", broken)
    for streams in (1, 4):
        engine = Generated(16 * MIB)
        with pytest.raises(MemoryError):
            await run(engine, streams=streams)
        assert engine.now == 0


@pytest.mark.parametrize(("streams", "most"), [(1, 8 * MIB), (4, 40 * MIB)])
async def test_large_object_in_bounded_memory(streams: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    zeros = memoryview(bytes(8 * MIB))
    monkeypatch.setattr("tests.support.generated.content", lambda first, end: zeros[: end - first])
    engine = Generated(300_000_000)
    tracemalloc.start()
    try:
        result = await run(engine, CRC, streams=streams)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert isinstance(result, Hashed)
    assert peak < most
