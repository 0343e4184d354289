"""One pass over one object: every size, cuts at every kind of point, pauses, several streams, bounded memory."""

from __future__ import annotations

import asyncio
import itertools
import random
import sys
import tracemalloc
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any

import pytest

from auditor.aio.budget import InFlightBudget
from auditor.errors import CallFailed, LeaseLostError, UsageError
from auditor.hashing.digest import digester as digesting
from auditor.hashing.digest import one_pass as onepass
from auditor.hashing.digest import resumable
from auditor.hashing.digest.digester_thread import INLINE
from auditor.hashing.digest.object import hash_object, hash_patiently
from auditor.hashing.digest.options import HashOptions
from auditor.hashing.digest.reader import HARDLY
from auditor.hashing.digest.result import Failed, Hashed, Mismatch, Paused, Superseded, Unhashable
from auditor.hashing.digest.streams import MEMORY, Tuner, layout
from auditor.hashing.limits import MIB
from auditor.s3.engines.base import Body, Span
from auditor.s3.paced_reads import PacedReads
from tests.support.fakes.hashing import CountedRate
from tests.support.generated import Cut, Generated, digests_of, no_pause

KNOWN = ("sha256", "sha1", "md5")
BIG = 5 * MIB + 12_345


@pytest.fixture(scope="module")
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as executor:
        yield executor


def hashed(result: object, engine: Generated, *algorithms: str) -> Hashed:
    """The result, after its digests were compared with hashlib's of the whole."""
    assert isinstance(result, Hashed), result
    assert result.digests == digests_of(engine.size, *algorithms)
    assert engine.now == 0, "every body was closed"
    return result


async def test_object_of_any_size(threads: ThreadPoolExecutor) -> None:
    """A small object is finished whatever the stop says, and a stop after the last byte is no pause."""
    sizes = [0, 1, 63, 64, 65, INLINE - 1, INLINE, INLINE + 1, MIB - 1, MIB, MIB + 1, 3 * MIB, 3 * MIB + 1, BIG]
    for size, stop in itertools.product(sizes, (None, lambda: False)):
        engine = Generated(size)
        stop = (lambda: True) if stop and size <= INLINE else after(3) if stop and size == 3 * MIB else stop
        result = await hash_object(engine, engine.task, KNOWN, HashOptions(executor=threads, stop=stop))
        assert hashed(result, engine, *KNOWN).bytes_read == size
        assert engine.calls == [(None, "etag")]


@pytest.mark.parametrize("code", ["ConnectionError", "SlowDown", None])
@pytest.mark.parametrize("size", [5000, BIG])
async def test_body_that_is_cut_goes_on_at_its_last_byte(
    code: str | None, size: int, threads: ThreadPoolExecutor
) -> None:
    points = sorted({0, 1, 63, 64, size // 3, size // 2, min(MIB, size - 2), size - 1})
    engine = Generated(size, answers=[Cut(point, code, absolute=True) for point in points])
    result = await hash_object(engine, engine.task, KNOWN, HashOptions(executor=threads, sleep=no_pause))
    assert hashed(result, engine, *KNOWN).bytes_read == size
    spans = [span for span, _ in engine.calls]
    assert spans == [None, None, *(f"bytes={point}-{size - 1}" for point in points[1:])]
    assert {etag for _, etag in engine.calls} == {"etag"}


@pytest.mark.parametrize("seed", range(6))
async def test_cuts_anywhere(seed: int, threads: ThreadPoolExecutor) -> None:
    chance = random.Random(seed)
    engine = Generated(BIG)
    for _ in range(chance.randrange(1, 40)):
        engine.answers.append(Cut(chance.choice([0, 1, chance.randrange(BIG // 4)]), chance.choice(["Timeout", None])))
        engine.answers.append(Cut(chance.randrange(1, BIG // 2)))
    result = await hash_object(
        engine,
        engine.task,
        ["sha256"],
        HashOptions(
            executor=threads,
            sleep=no_pause,
            streams=chance.choice([1, 3]),
            buffer_size=chance.choice([1000, 65_536, MIB]),
        ),
    )
    hashed(result, engine, "sha256")


@pytest.mark.parametrize("refusal", [None, CallFailed("GetObject", "InternalError", 500)])
@pytest.mark.parametrize("streams", [1, 4])
async def test_read_that_brings_no_byte_is_given_up(streams: int, refusal: CallFailed | None) -> None:
    pauses: list[float] = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)
        await asyncio.sleep(0)

    engine = Generated(16 * MIB, answers=[Cut(100_000), *[refusal or Cut(0)] * 99])
    result = await hash_object(engine, engine.task, ["md5"], HashOptions(sleep=pause, streams=streams))
    assert result == Failed(engine.task, refusal.code if refusal else "ConnectionError", retryable=False, outage=True)
    assert engine.now == 0
    if streams == 1:
        assert len(engine.calls) == 6
        assert all(0.2 * 2**nth / 2 <= paused <= 0.2 * 2**nth for nth, paused in enumerate(pauses, 1))


async def test_fruitless_calls_count_anew_after_progress() -> None:
    vain = [Cut(0)] * 4
    engine = Generated(1000, answers=[Cut(100), *vain, Cut(60), *vain, Cut(60), *vain])
    hashed(await hash_object(engine, engine.task, ["md5"], HashOptions(sleep=no_pause)), engine, "md5")


@pytest.mark.parametrize(("piece", "calls"), [(256, 16), (200, 5), (0, 5)])
async def test_small_object_in_pieces_is_read_if_each_is_a_sixteenth(piece: int, calls: int) -> None:
    engine = Generated(4096, answers=[Cut(piece, None) for _ in range(99)])
    result = await hash_object(engine, engine.task, ["md5"], HashOptions(sleep=no_pause))
    assert len(engine.calls) == calls
    if piece == 256:
        hashed(result, engine, "md5")
    else:
        assert result == Failed(engine.task, "ByteCount", retryable=False)


@pytest.mark.parametrize(("brought", "calls"), [(1, 5), (HARDLY - 1, 5), (HARDLY, 2 * MIB // HARDLY)])
async def test_body_that_drips_is_given_up_and_a_slow_one_is_not(brought: int, calls: int) -> None:
    engine = Generated(2 * MIB, answers=[Cut(brought, "Timeout") for _ in range(40)])
    result = await hash_object(engine, engine.task, ["md5"], HashOptions(sleep=no_pause))
    assert len(engine.calls) == calls
    if brought < HARDLY:
        assert result == Failed(engine.task, "Timeout", retryable=False, outage=True)
    else:
        hashed(result, engine, "md5")


@pytest.mark.parametrize("code", [None, "ConnectionError"])
@pytest.mark.parametrize("streams", [1, 4])
async def test_body_that_brings_fifty_bytes_a_call_is_given_up_after_five_calls(streams: int, code: str | None) -> None:
    engine = Generated(23_000_000, answers=[Cut(50, code) for _ in range(1000)])
    result = await hash_patiently(engine, engine.task, ["md5"], HashOptions(sleep=no_pause, streams=streams))
    assert result == Failed(engine.task, code or "ByteCount", retryable=False, outage=code is not None)
    assert len(engine.calls) <= 5 * streams


@pytest.mark.parametrize("streams", [1, 4])
@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (CallFailed("GetObject", "PreconditionFailed", 412), lambda task: Superseded(task, "Overwritten")),
        (CallFailed("GetObject", "NoSuchKey", 404), lambda task: Superseded(task, "Vanished")),
        (CallFailed("GetObject", "NoSuchVersion", 404), lambda task: Superseded(task, "Vanished")),
        (CallFailed("GetObject", "InvalidObjectState", 403), lambda task: Unhashable(task, "archived")),
        (CallFailed("GetObject", "AccessDenied", 403), lambda task: Failed(task, "AccessDenied", retryable=False)),
        (CallFailed("GetObject", "Malformed", 206), lambda task: Failed(task, "Malformed", retryable=False)),
    ],
)
async def test_failure_in_mid_read_is_a_value(
    streams: int, failure: CallFailed, expected: Callable[[object], object], threads: ThreadPoolExecutor
) -> None:
    engine = Generated(16 * MIB, answers=[Cut(2 * MIB), failure])
    result = await hash_object(
        engine, engine.task, ["md5"], HashOptions(executor=threads, sleep=no_pause, streams=streams)
    )
    assert result == expected(engine.task)
    assert engine.now == 0


@pytest.mark.parametrize("streams", [1, 4])
async def test_object_that_is_overwritten_in_mid_read(streams: int, threads: ThreadPoolExecutor) -> None:
    class Careless(Generated):
        """Ignores If-Match: the ETag of its answer tells."""

        def get(self, key: str, version_id: str | None, etag: str | None, span: Any = None) -> Any:
            return super().get(key, version_id, None, span)

    for kind in (Generated, Careless):
        engine = kind(16 * MIB, etags=["etag", "newer"], answers=[Cut(3 * MIB)])
        result = await hash_object(
            engine, engine.task, ["md5"], HashOptions(executor=threads, sleep=no_pause, streams=streams)
        )
        assert result == Superseded(engine.task, "Overwritten")


async def test_every_call_takes_its_turn(threads: ThreadPoolExecutor) -> None:
    rate = CountedRate()
    engine = Generated(32 * MIB, answers=[None, Cut(5), Cut(9)])
    reads = PacedReads(engine, rate)
    result = await hash_object(reads, engine.task, ["md5"], HashOptions(executor=threads, streams=4, sleep=no_pause))
    hashed(result, engine, "md5")
    assert rate.turns == reads.calls == len(engine.calls) == 6


# Pauses and checkpoints.


def after(buffers: int) -> Callable[[], bool]:
    """Return true at the given question."""
    asked = itertools.count(1)
    return lambda: next(asked) >= buffers


@pytest.mark.parametrize("streams", [1, 3])
async def test_many_pauses_in_one_object(streams: int, threads: ThreadPoolExecutor) -> None:
    engine = Generated(60 * 65_536 + 77)
    checkpoint: Mapping[str, Any] | None = None
    pauses = 0
    while True:
        result = await hash_object(
            engine,
            engine.task,
            [*KNOWN, "crc64nvme"],
            HashOptions(
                bucket="bucket",
                buffer_size=65_536,
                executor=threads,
                stop=after(1),
                streams=streams if pauses % 2 else 1,
            ),
            checkpoint=checkpoint,
        )
        if not isinstance(result, Paused):
            break
        pauses += 1
        assert result.checkpoint is not None
        assert result.bytes == result.checkpoint["bytes"]
        assert result.bytes % 64 == 0
        checkpoint = result.checkpoint
    assert isinstance(result, Hashed)
    plain = await hash_object(engine, engine.task, [*KNOWN, "crc64nvme"])
    assert isinstance(plain, Hashed)
    assert result.digests == plain.digests
    assert {name: result.digests[name] for name in KNOWN} == digests_of(engine.size, *KNOWN)
    assert pauses == 60 if streams == 1 else pauses > 2


async def paused(engine: Generated, threads: ThreadPoolExecutor, *algorithms: str) -> Paused:
    result = await hash_object(
        engine, engine.task, algorithms or ["sha256"], HashOptions(bucket="bucket", executor=threads, stop=after(2))
    )
    assert isinstance(result, Paused)
    assert result.bytes == 2 * MIB
    return result


async def test_continued_object_is_read_from_its_checkpoint_only(threads: ThreadPoolExecutor) -> None:
    engine = Generated(BIG)
    first = await paused(engine, threads)
    engine.calls.clear()
    result = await hash_object(
        engine, engine.task, ["sha256"], HashOptions(bucket="bucket"), checkpoint=first.checkpoint
    )
    assert engine.calls == [(f"bytes={2 * MIB}-{BIG - 1}", "etag")]
    assert BIG <= hashed(result, engine, "sha256").bytes_read <= BIG + 3 * MIB
    engine.etags = ["newer"]
    options = HashOptions(bucket="bucket")
    result = await hash_object(engine, engine.task, ["sha256"], options, checkpoint=first.checkpoint)
    assert result == Superseded(engine.task, "Overwritten")


@pytest.mark.parametrize("field", ["states", "seal"])
async def test_tampered_checkpoint_is_refused_and_the_object_hashed_from_its_start(
    field: str, threads: ThreadPoolExecutor, caplog: pytest.LogCaptureFixture
) -> None:
    engine = Generated(BIG)
    first = await paused(engine, threads)
    assert first.checkpoint is not None
    changes: dict[str, object] = {"bytes": MIB, "states": {"sha256": "0" * 64}}
    tampered = {**first.checkpoint, field: changes.get(field, "x")}
    engine.calls.clear()
    result = await hash_object(engine, engine.task, ["sha256"], HashOptions(bucket="bucket"), checkpoint=tampered)
    assert engine.calls == [(None, "etag")]
    hashed(result, engine, "sha256")
    assert "from its start: the checkpoint" in caplog.text


async def test_pause_without_resumable_digests_says_why(
    monkeypatch: pytest.MonkeyPatch, threads: ThreadPoolExecutor
) -> None:
    engine = Generated(BIG)
    before = await paused(engine, threads)
    monkeypatch.setattr(resumable, "refusal", lambda: "no libcrypto here")
    result = await hash_object(engine, engine.task, ["sha256"], HashOptions(executor=threads, stop=after(2)))
    assert result == Paused(engine.task, None, 2 * MIB, "no libcrypto here", 2 * MIB)
    whole = await hash_object(
        engine, engine.task, ["sha256"], HashOptions(bucket="bucket"), checkpoint=before.checkpoint
    )
    hashed(whole, engine, "sha256")


async def test_stop_is_heard_while_a_read_waits(monkeypatch: pytest.MonkeyPatch, threads: ThreadPoolExecutor) -> None:
    monkeypatch.setattr(onepass, "POLL", 0.01)
    stopping = False
    waits = itertools.chain([0.0] * 3, itertools.repeat(3600.0))

    def wait() -> float:
        nonlocal stopping
        seconds = next(waits)
        stopping = seconds > 0
        return seconds

    engine = Generated(BIG, pause=wait)
    result = await asyncio.wait_for(
        hash_object(engine, engine.task, ["sha256"], HashOptions(bucket="b", executor=threads, stop=lambda: stopping)),
        30,
    )
    assert isinstance(result, Paused)
    assert result.bytes == 3 * MIB
    assert engine.now == 0


@pytest.mark.parametrize("goes_on", [False, True])
async def test_stop_is_heard_while_nothing_answers(
    monkeypatch: pytest.MonkeyPatch, threads: ThreadPoolExecutor, goes_on: bool
) -> None:
    class Silent(Generated):
        @asynccontextmanager
        async def _get(self, etag: str | None, span: Span | None) -> AsyncIterator[Body]:
            await asyncio.sleep(3600)
            async with super()._get(etag, span) as body:
                yield body

    checkpoint = (await paused(Generated(BIG), threads)).checkpoint if goes_on else None
    monkeypatch.setattr(onepass, "POLL", 0.01)
    engine = Silent(BIG)
    hashing = hash_object(
        engine,
        engine.task,
        ["sha256"],
        HashOptions(bucket="bucket", executor=threads, stop=lambda: True),
        checkpoint=checkpoint,
    )
    result = await asyncio.wait_for(hashing, 30)
    assert result == Paused(engine.task, checkpoint, checkpoint["bytes"] if checkpoint else 0)


async def test_small_object_takes_no_thread() -> None:
    engine, large = Generated(INLINE), Generated(INLINE + 1)
    options = HashOptions(executor=Executor())  # it refuses all work
    hashed(await hash_object(engine, engine.task, ["md5"], options), engine, "md5")
    with pytest.raises(NotImplementedError):
        await hash_object(large, large.task, ["md5"], options)


@pytest.mark.parametrize("streams", [1, 4])
async def test_each_saved_checkpoint_leads_to_the_same_digest(streams: int, threads: ThreadPoolExecutor) -> None:
    engine = Generated(16 * MIB)
    saved: list[Mapping[str, Any]] = []

    async def save(checkpoint: Mapping[str, Any] | None) -> None:
        assert checkpoint is not None
        saved.append(checkpoint)

    result = await hash_object(
        engine,
        engine.task,
        ["sha1"],
        HashOptions(bucket="b", executor=threads, save=save, save_seconds=0.0, streams=streams),
    )
    hashed(result, engine, "sha1")
    assert len(saved) >= 3
    assert [one["bytes"] for one in saved] == sorted({one["bytes"] for one in saved})
    for one in saved:
        again = await hash_object(engine, engine.task, ["sha1"], HashOptions(bucket="b"), checkpoint=one)
        hashed(again, engine, "sha1")


@pytest.mark.parametrize("streams", [1, 4])
async def test_lost_lease_ends_the_hashing(streams: int, threads: ThreadPoolExecutor) -> None:
    async def save(_: Mapping[str, Any] | None) -> None:
        raise LeaseLostError("another has it")

    engine = Generated(16 * MIB)
    permits = InFlightBudget(1, MEMORY)
    with pytest.raises(LeaseLostError):
        await hash_object(
            engine,
            engine.task,
            ["sha1"],
            HashOptions(
                executor=threads, save=save, save_seconds=0.0, streams=streams, memory=permits, stop=lambda: False
            ),
        )
    assert engine.now == 0
    assert permits.borrow(MEMORY), "nothing is borrowed any more"


# What S3 stored.

CRC = "crc64nvme"


async def crc_of(engine: Generated) -> str:
    result = await hash_object(engine, engine.task, [CRC])
    assert isinstance(result, Hashed)
    return result.digests[CRC]


@pytest.mark.parametrize("name", ["sha256", CRC])
async def test_stored_digest_that_differs_is_a_mismatch(name: str, threads: ThreadPoolExecutor) -> None:
    engine = Generated(BIG)
    ours = {CRC: await crc_of(engine), **digests_of(BIG, "sha256")}
    engine.stored = {"crc32": "00000000", **ours}
    hashed(await hash_object(engine, engine.task, ["sha256", "md5"]), engine, "sha256", "md5")
    engine.stored = ours | {name: "0" * len(ours[name])}
    result = await hash_object(engine, engine.task, ["sha256"], HashOptions(executor=threads))
    assert result == Mismatch(engine.task, name, ours[name], engine.stored[name], BIG)


async def test_stored_digest_is_compared_after_a_pause_too(threads: ThreadPoolExecutor) -> None:
    engine = Generated(BIG, stored={CRC: "0" * 16, "crc32": "00000000"})
    first = await paused(engine, threads)
    engine.calls.clear()
    result = await hash_object(
        engine, engine.task, ["sha256"], HashOptions(bucket="bucket"), checkpoint=first.checkpoint
    )
    assert isinstance(result, Mismatch)
    assert engine.calls == [(f"bytes={2 * MIB}-{BIG - 1}", "etag")], "it is not read from its start"
    assert (result.algorithm, result.ours) == (CRC, await crc_of(Generated(BIG)))


async def test_without_awscrt_crc64nvme_is_not_compared_and_a_request_for_it_is_refused(
    monkeypatch: pytest.MonkeyPatch, threads: ThreadPoolExecutor
) -> None:
    engine = Generated(BIG, stored={CRC: "0" * 16})
    first = await paused(engine, threads)
    monkeypatch.setitem(sys.modules, "awscrt.checksums", None)
    digesting._crc64nvme.cache_clear()
    try:
        result = await hash_object(
            engine, engine.task, ["sha256"], HashOptions(bucket="bucket"), checkpoint=first.checkpoint
        )
        hashed(result, engine, "sha256")
        with pytest.raises(UsageError, match=r"pip install '\.\[crc64\]'"):
            await hash_object(engine, engine.task, [CRC])
    finally:
        digesting._crc64nvme.cache_clear()


# Several streams.


@pytest.mark.parametrize("seed", range(2))
async def test_streams_with_shuffled_latencies_hash_in_order(seed: int, threads: ThreadPoolExecutor) -> None:
    chance = random.Random(seed)
    engine = Generated(40 * MIB + 1, pause=lambda: chance.choice([0.0, 0.0, 0.001, 0.01]))
    streams = chance.choice([2, 3, 5, 8, 16])
    result = await hash_object(engine, engine.task, ["sha256"], HashOptions(executor=threads, streams=streams))
    hashed(result, engine, "sha256")
    assert engine.most == streams
    assert engine.calls[0] == (None, "etag")
    assert all(etag == "etag" for _, etag in engine.calls)


@pytest.mark.parametrize("streams", [2, 4])
async def test_each_stream_has_one_body_open_and_asks_for_its_next_block_at_once(
    streams: int, threads: ThreadPoolExecutor
) -> None:
    opened: list[int] = []

    def pause() -> float:
        opened.append(engine.now)
        return 0.001

    engine = Generated(120 * MIB, pause=pause)
    hashed(
        await hash_object(engine, engine.task, ["sha1"], HashOptions(executor=threads, streams=streams)), engine, "sha1"
    )
    assert max(opened) == streams
    assert len(engine.calls) == -(-engine.size // layout(streams, engine.size).block)


async def test_auto_adds_streams_where_each_brings_more_and_hashes_in_order(
    monkeypatch: pytest.MonkeyPatch, threads: ThreadPoolExecutor
) -> None:
    wanted = iter([1, 1, 1, *[2] * 9, *[4] * 20, *[1] * 60, 8])
    monkeypatch.setattr(Tuner, "note", lambda tuner, now, count, busy: next(wanted, 8))
    engine = Generated(300 * MIB, pause=lambda: 0.002)
    hashed(
        await hash_object(engine, engine.task, ["sha1"], HashOptions(executor=threads, streams=None)), engine, "sha1"
    )
    assert engine.most == 8


async def test_streams_are_as_many_as_there_is_memory_for(threads: ThreadPoolExecutor) -> None:
    permits = InFlightBudget(1, layout(2, 64 * MIB).memory)
    engine = Generated(64 * MIB)
    result = await hash_object(engine, engine.task, ["sha1"], HashOptions(executor=threads, streams=8, memory=permits))
    hashed(result, engine, "sha1")
    assert engine.most == 2
    await permits.take(1)
    engine.most = 0
    hashed(
        await hash_object(engine, engine.task, ["sha1"], HashOptions(executor=threads, streams=8, memory=permits)),
        engine,
        "sha1",
    )
    assert engine.most == 1


@pytest.mark.parametrize("streams", [1, 4])
async def test_cancelled_in_mid_read_closes_every_body(streams: int, threads: ThreadPoolExecutor) -> None:
    engine = Generated(64 * MIB, pause=lambda: 0.001)
    permits = InFlightBudget(1, MEMORY)
    work = asyncio.create_task(
        hash_object(engine, engine.task, ["sha1"], HashOptions(executor=threads, streams=streams, memory=permits))
    )
    while engine.now < streams:  # noqa: ASYNC110 - the fake has no event for it
        await asyncio.sleep(0)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert engine.now == 0
    assert permits.borrow(MEMORY)


async def test_error_of_a_digest_is_raised_and_not_lost(
    monkeypatch: pytest.MonkeyPatch, threads: ThreadPoolExecutor
) -> None:
    def broken(digester: object, data: memoryview) -> None:
        raise MemoryError("no room")

    monkeypatch.setattr(digesting.Digester, "update", broken)
    for streams in (1, 4):
        engine = Generated(16 * MIB)
        with pytest.raises(MemoryError):
            await hash_object(engine, engine.task, ["sha1"], HashOptions(executor=threads, streams=streams))
        assert engine.now == 0


@pytest.mark.parametrize(("streams", "most"), [(1, 8 * MIB), (4, 40 * MIB)])
async def test_large_object_in_bounded_memory(
    streams: int, most: int, threads: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.support.generated.content", lambda first, end: ZEROS[: end - first])
    engine = Generated(300_000_000)
    tracemalloc.start()
    try:
        result = await hash_object(engine, engine.task, ["crc64nvme"], HashOptions(executor=threads, streams=streams))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert isinstance(result, Hashed)
    assert peak < most


ZEROS = memoryview(bytes(8 * MIB))
