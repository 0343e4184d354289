"""The wait of a run in this process for S3: as long as S3 sends no object, and not for one object alone."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from auditor.aio.stop import Stop
from auditor.errors import CallFailed
from auditor.hashing.digest.object import hash_patiently
from auditor.hashing.digest.options import HashOptions
from auditor.hashing.digest.result import Failed, Hashed, Result
from auditor.hashing.outage import LONGEST, LONGEST_UNPROVEN, PAUSE, REFUSED_ALONE, S3Patience
from auditor.hashing.queue.message import HashTask
from auditor.s3.engines.base import Body, Span
from tests.support.fakes.hashing import Store, etag_of, no_pause

SLOW_DOWN = CallFailed("GetObject", "SlowDown", 503)


@dataclass(slots=True)
class Clocked(Store):
    """A bucket whose reads of some keys are refused, in the time that the pauses of the patience take."""

    time: float = 0.0
    refuses: Callable[[str, float], bool] = field(default=lambda key, time: False)
    stop: Stop = field(default_factory=Stop)
    stops_at: float = float("inf")
    patience: S3Patience = field(init=False)

    def __post_init__(self) -> None:
        self.patience = S3Patience(self.stop, self.pause)

    async def pause(self, seconds: float) -> None:
        await no_pause(seconds)
        self.time += seconds
        if self.time >= self.stops_at:
            self.stop.set("enough")

    @asynccontextmanager
    async def _get(self, key: str, etag: str | None, span: Span | None) -> AsyncIterator[Body]:
        if self.refuses(key, self.time):
            raise SLOW_DOWN
        async with Store._get(self, key, etag, span) as body:
            yield body

    async def hash(self, key: str) -> Result:
        data = self.objects.setdefault(key, key.encode())
        task = HashTask(key, None, etag_of(data), len(data))
        return await hash_patiently(self, task, ["sha256"], HashOptions(patience=self.patience, sleep=no_pause))


@pytest.mark.parametrize("begins", [0.0, 1.0], ids=["from the first read on", "after the first object"])
async def test_outage_of_two_minutes_is_waited_out(begins: float) -> None:
    store = Clocked()
    if begins:
        assert isinstance(await store.hash("first"), Hashed)
    store.refuses = lambda key, time: time < 120
    for number in range(20):
        assert isinstance(await store.hash(f"key-{number}"), Hashed)
    assert 120 <= store.time < 190


async def test_object_that_s3_alone_refuses_is_not_waited_for() -> None:
    store = Clocked(refuses=lambda key, time: key == "broken")
    assert isinstance(await store.hash("sound"), Hashed)
    assert await store.hash("broken") == Failed(
        HashTask("broken", None, etag_of(b"broken"), 6), "SlowDown", retryable=True, outage=True
    )
    assert store.time < 2 ** (REFUSED_ALONE - 1)
    assert isinstance(await store.hash("other"), Hashed)


@pytest.mark.parametrize(("sound", "longest"), [(False, LONGEST_UNPROVEN), (True, LONGEST)])
async def test_wait_has_an_end_which_the_other_objects_share(sound: bool, longest: float) -> None:
    store = Clocked()
    if sound:
        await store.hash("sound")
    store.refuses = lambda key, time: True
    assert isinstance(await store.hash("one"), Failed)
    ended = store.time
    assert longest <= ended < longest + 60
    assert isinstance(await store.hash("two"), Failed)
    assert store.time == ended
    store.refuses = lambda key, time: False
    assert isinstance(await store.hash("one"), Hashed)
    store.refuses = lambda key, time: time < ended + 30
    assert isinstance(await store.hash("three"), Hashed)


async def test_stop_ends_the_wait() -> None:
    store = Clocked(refuses=lambda key, time: True, stops_at=10.0)
    assert isinstance(await store.hash("one"), Failed)
    assert store.time <= 10.0 + PAUSE  # the pause in which the stop comes is the last one
