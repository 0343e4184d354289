"""Notifications in whatever order: the newest object is hashed, the older ones are not read, deletions are noted."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from auditor.errors import CallFailed
from auditor.hashing.queue.message import decode
from auditor.hashing.worker.counts import Counts
from auditor.hashing.worker.processor import Processor
from auditor.ledger.base import Ledger
from auditor.model.object import ObjectRef
from tests.hashing.queue.test_notification import plain
from tests.hashing.queue.test_notification import record as notified
from tests.support.fakes.hashing import MemoryQueue, Store, etag_of, processor_of
from tests.support.fakes.ledger import versions_of


@pytest.fixture
def store() -> Store:
    return Store({"key": b"newest"})


@pytest.fixture
def processor(queue: MemoryQueue, ledger: Ledger, store: Store) -> Processor:
    return processor_of(queue, ledger, store)


def record(event: str, sequencer: str, data: bytes = b"newest", **more: str) -> dict[str, Any]:
    return notified(event=event, sequencer=sequencer, size=len(data), eTag=etag_of(data), **more)


OLDEST = record("ObjectCreated:Put", "0055AED6DCD90281E3", b"oldest")
MIDDLE = record("ObjectCreated:Put", "0055AED6DCD90281E4", b"middle")
NEWEST = record("ObjectCreated:Put", "0055AED6DCD90281E5")


@pytest.mark.parametrize("order", list(itertools.permutations((OLDEST, MIDDLE, NEWEST))))
async def test_events_in_each_order_leave_the_newest_objects_digest(
    processor: Processor, queue: MemoryQueue, ledger: Ledger, store: Store, order: tuple[dict[str, Any], ...]
) -> None:
    for one in order:
        await processor.process(queue.put(plain(one)))
    assert [version.etag for version in await versions_of(ledger, "bucket", "key")] == [etag_of(b"newest")]
    # What is newer than all before it is asked for, and found overwritten where it is not the newest.
    sequencers = [one["s3"]["object"]["sequencer"] for one in order]
    assert len(store.reads) == len(set(itertools.accumulate(sequencers, max)))


async def test_older_version_is_hashed_all_the_same(processor: Processor, queue: MemoryQueue, ledger: Ledger) -> None:
    await processor.process(queue.put(plain(record("ObjectCreated:Put", "0055AED6DCD90281E5", versionId="2"))))
    older = record("ObjectCreated:Put", "0055AED6DCD90281E4", versionId="1")
    done = await processor.process(queue.put(plain(older)))
    assert done.counts == Counts(messages=1, hashed=1)
    ref = ObjectRef("key", etag_of(b"newest"), len(b"newest"), "", "1")
    assert (await ledger.known("bucket", [ref], ["sha256"]))[0].keys() == {"sha256"}


async def test_object_sent_again_is_given_up_when_its_newer_one_has_come(
    processor: Processor, queue: MemoryQueue, store: Store
) -> None:
    store.failures["key"] = [CallFailed("GetObject", "AccessDenied", 403)] * 3
    done = await processor.process(queue.put(plain(OLDEST)))
    assert done.counts == Counts(messages=1, resent=1)
    (again,) = queue.sent
    assert decode(again.body).tasks[0].sequencer == "0055AED6DCD90281E3"
    store.failures.clear()
    await processor.process(queue.put(plain(NEWEST)))
    store.reads.clear()
    done = await processor.process(queue.put(again.body))
    assert (done.counts, store.reads) == (Counts(messages=1, superseded=1), [])
