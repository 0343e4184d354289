"""Bytes that contradict S3's checksum are logged, noted in the history, and never recorded."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from auditor.hashing.queue.message import decode
from auditor.hashing.worker.counts import Counts
from auditor.hashing.worker.options import WorkerOptions
from auditor.hashing.worker.processor import Processor
from auditor.ledger import open_ledger
from auditor.ledger.base import Ledger
from auditor.model.object import ObjectRef
from auditor.s3.engines.pool import EnginePool
from tests.support.fakes.hashing import Buckets, MemoryQueue, Store, etag_of, message_of, no_pause

DATA = b"what lies there" * 100_000
OURS = hashlib.sha256(DATA).hexdigest()
STORED = hashlib.sha256(b"what was stored").hexdigest()
LARGE = WorkerOptions(large=100_000, buffer_size=64 * 1024)
SMALL = WorkerOptions()


@pytest.fixture
async def ledger(tmp_path: Path) -> AsyncIterator[Ledger]:
    async with open_ledger(f"sqlite:{tmp_path / 'ledger.db'}") as opened:
        yield opened


@pytest.fixture
def store() -> Store:
    return Store({"key": DATA, "good": b"good"}, stored={"key": {"sha256": STORED}})


@pytest.fixture
def queue() -> MemoryQueue:
    return MemoryQueue(MemoryQueue())


@pytest.mark.parametrize("settings", [SMALL, LARGE], ids=["small", "large"])
async def test_mismatch_is_logged_and_noted_and_not_recorded(
    queue: MemoryQueue, ledger: Ledger, store: Store, caplog: pytest.LogCaptureFixture, settings: WorkerOptions
) -> None:
    engines = EnginePool(Buckets(bucket=store))
    processor = Processor(queue, queue.dead_letters, ledger, engines, settings, sleep=no_pause)
    with caplog.at_level(logging.ERROR):
        done = await processor.process(queue.put(message_of(store, "key", "good")))
    assert done.counts == Counts(messages=1, hashed=1, failed=1, mismatched=1, dead_lettered=1)
    (line,) = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert "do not match S3's checksum" in line
    assert OURS in line
    assert STORED in line
    assert queue.dead_letters is not None
    (letter,) = queue.dead_letters.sent
    assert letter.attributes["reason"] == "ChecksumMismatch"
    assert [task.key for task in decode(letter.body).tasks] == ["key"]
    (event,) = await ledger.history("bucket", "key")
    assert (event.what, event.etag, event.size) == ("mismatch", etag_of(DATA), len(DATA))
    assert event.detail == {"algorithm": "sha256", "digest": OURS, "stored": STORED, "source": "s3"}
    ref = ObjectRef("key", etag_of(DATA), len(DATA), "")
    assert await ledger.known("bucket", [ref], ["sha256"]) == [{}]
