"""New objects in storage classes that charge for reading: the worker leaves them, unless the settings accept it."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from auditor.aws.sqs import Received
from auditor.errors import CallFailed
from auditor.hashing.worker.counts import Counts, Processed
from auditor.hashing.worker.options import WorkerOptions
from auditor.ledger.base import Ledger
from auditor.model.object import Head
from tests.hashing.queue.test_notification import plain, record
from tests.support.fakes.hashing import MemoryQueue, Store, digests_in, etag_of, message_of, processor_of, sha256_of

CLASSES = {
    "plain": None,
    "tiered": "INTELLIGENT_TIERING",
    "infrequent": "STANDARD_IA",
    "one zone": "ONEZONE_IA",
    "instant": "GLACIER_IR",
}


@dataclass(slots=True)
class Classed(Store):
    """A bucket with storage classes. refused: errors of the next HEADs."""

    heads: list[str] = field(default_factory=list)
    refused: list[CallFailed] = field(default_factory=list)

    async def head(self, key: str, version_id: str | None, *, checksum: bool) -> Head:
        self.heads.append(key)
        if self.refused:
            raise self.refused.pop()
        data = self.objects[key]
        return Head(etag=etag_of(data), content_length=len(data), storage_class=CLASSES[key])


@pytest.fixture
def store() -> Classed:
    return Classed({key: key.encode() * 100 for key in CLASSES})


def received(body: str) -> Received:
    return Received("id", "receipt", body, 1)


def events(store: Classed, *keys: str) -> Received:
    """An S3 event notification of new objects."""
    data = {key: store.objects[key] for key in keys}
    return received(plain(*(record(key, size=len(one), eTag=etag_of(one)) for key, one in data.items())))


async def processed(message: Received, store: Classed, ledger: Ledger, *, accept_cost: bool = False) -> Processed:
    queue = MemoryQueue(MemoryQueue())
    return await processor_of(queue, ledger, store, WorkerOptions(accept_cost=accept_cost)).process(message)


async def test_new_object_that_is_charged_for_reading_is_left_unread(store: Classed, ledger: Ledger) -> None:
    done = await processed(events(store, *CLASSES), store, ledger)
    assert done.counts == Counts(messages=1, hashed=2, left_for_cost=3)
    assert done.retry_after is None
    assert sorted(store.reads) == ["plain", "tiered"]
    assert sorted(store.heads) == sorted(CLASSES)
    assert await digests_in(ledger, store) == sha256_of({key: store.objects[key] for key in ("plain", "tiered")})


@pytest.mark.parametrize("accept_cost", [True, False])
async def test_accepted_objects_are_read_without_asking_for_their_class(
    store: Classed, ledger: Ledger, accept_cost: bool
) -> None:
    message = events(store, *CLASSES) if accept_cost else received(message_of(store, *CLASSES))
    done = await processed(message, store, ledger, accept_cost=accept_cost)
    assert done.counts == Counts(messages=1, hashed=len(CLASSES))
    assert store.heads == []


async def test_object_under_a_customers_key_is_unhashable_by_its_refused_read(store: Classed, ledger: Ledger) -> None:
    store.refused = [CallFailed("HeadObject", "400", 400)]
    store.failures = {"plain": [CallFailed("GetObject", "InvalidRequest", 400)]}
    done = await processed(events(store, "plain"), store, ledger)
    assert done.counts == Counts(messages=1, unhashable=1)


async def test_object_whose_head_fails_is_not_read(store: Classed, ledger: Ledger) -> None:
    for code, expected in ((404, Counts(messages=1, superseded=1)), (503, Counts(messages=1, resent=1))):
        store.refused = [CallFailed("HeadObject", f"{code}", code)]
        done = await processed(events(store, "instant"), store, ledger)
        assert (done.counts, store.reads) == (expected, [])
