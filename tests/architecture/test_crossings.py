"""An object and a queue message cross few boundaries between the rooms (the folders of auditor/)."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Final

import pytest

import auditor
from auditor.hashing.limits import LARGE
from auditor.hashing.worker.options import WorkerOptions
from auditor.hashing.worker.processor import Processor
from auditor.lambdas.hashing import HashingFunction
from auditor.ledger import open_ledger
from auditor.s3.engines.pool import EnginePool
from tests.support.fakes.hashing import Buckets, MemoryQueue, Store, message_of
from tests.support.servers.stub import StubServer
from tests.support.verification import make_bench

ROOT: Final = f"{Path(auditor.__file__).parent}/"
GET: Final = "Store._get"
"""The read of an object in the memory's bucket, which stands for S3."""

Call = tuple[str, str]


def place_of(code: CodeType) -> str:
    """Like `s3/rate.py:RateLimit.take`; empty for code that is in no room."""
    function = code.co_qualname.partition(".<locals>")[0]
    if function == GET:
        return f"s3/:{GET}"
    path = code.co_filename.removeprefix(ROOT)
    return f"{path}:{function}" if path != code.co_filename and "/" in path else ""


class Crossings:
    """The calls from room to room, each caller and callee once, in the order of their first calls."""

    def __init__(self) -> None:
        self.calls: dict[Call, None] = {}
        self._begun: dict[int, FrameType] = {}

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        if event != "call" or id(frame) in self._begun or not (callee := place_of(frame.f_code)):
            return
        self._begun[id(frame)] = frame  # a coroutine that goes on is no call; the frame's id stays its own
        back = frame.f_back
        while back is not None and not (caller := place_of(back.f_code)):
            back = back.f_back
        if back is not None and caller.partition("/")[0] != callee.partition("/")[0]:
            self.calls[caller, callee] = None


@contextmanager
def watched() -> Iterator[Crossings]:
    crossings = Crossings()
    before = sys.getprofile()
    sys.setprofile(crossings)
    try:
        yield crossings
    finally:
        sys.setprofile(before)


async def test_object_that_is_verified(stub: StubServer, tmp_path: Path) -> None:
    """Of its reading: neither of the listing and the history, nor of the sink's batches. Reads of a body belong to its
    GET, and credentials and signatures to S3.
    """
    readers = ("aio/", "hashing/", "verify/pipeline.py", "verify/read.py", "verify/run.py")
    async with make_bench(stub, tmp_path) as bench:
        for key in ("first", "second"):  # the first one fills the caches
            await bench.recorded(bench.put(key))
            with watched() as crossings:
                await bench.verify()
    begun = next(place for place, call in enumerate(crossings.calls) if call[1].endswith(":Walk._start"))
    reading = [
        call
        for call in list(crossings.calls)[begun:]
        if call[0].startswith(readers) and not call[1].endswith((".readinto", "._hand_on"))
    ]
    ended = next(place for place, call in enumerate(reading) if call[1].endswith("PacedReads.get"))
    assert len(reading[: ended + 1]) <= 3, reading


@pytest.mark.parametrize("large", [False, True], ids=["small", "large, under a lease"])
async def test_message_from_the_handler_to_the_ledger(large: bool) -> None:
    store = Store({"first": b"1", "second": b"2"})
    options = WorkerOptions(has_deadline=True, accept_cost=True, large=1 if large else LARGE)
    async with open_ledger("sqlite::memory:") as ledger, EnginePool(Buckets(bucket=store)) as pool:
        function = HashingFunction({})
        function._processor = Processor(MemoryQueue(), MemoryQueue(), ledger, pool, options)
        for key in store.objects:  # the first one fills the caches
            event = {
                "Records": [{"messageId": "1", "receiptHandle": "1", "body": message_of(store, key), "attributes": {}}]
            }
            with watched() as crossings:
                assert await function.handle(event) == {"batchItemFailures": []}
    calls = list(crossings.calls)
    begun = next(place for place, call in enumerate(calls) if call[1].endswith(":Processor.process"))
    ended = next(place for place, call in enumerate(calls) if call[1].endswith(".record_many"))
    if not large:
        assert len(calls[begun : ended + 1]) <= 12, calls[begun : ended + 1]
    task = next(place for place, call in enumerate(calls) if call[1].endswith("InFlightBudget.for_each"))
    assert len(calls[task + 1 : ended + 1]) <= 6, calls[task + 1 : ended + 1]
