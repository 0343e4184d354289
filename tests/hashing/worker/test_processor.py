"""One message: known objects are skipped, failed ones are re-sent or dead letters, and none is lost."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from auditor.errors import CallFailed, DigestConflict, QueueError
from auditor.hashing.digest.result import entry_of
from auditor.hashing.queue.message import decode, encode
from auditor.hashing.worker.counts import Counts
from auditor.hashing.worker.options import WorkerOptions
from auditor.hashing.worker.processor import Processor
from auditor.ledger.base import Entry, Ledger
from auditor.model.object import ObjectRef
from tests.support.fakes.hashing import MemoryQueue, Store, digests_in, etag_of, message_of, processor_of, until
from tests.support.fakes.ledger import Hooked, failing

SETTINGS = WorkerOptions(retry_base=8.0)


def denied(times: int = 99) -> list[CallFailed]:
    return [CallFailed("GetObject", "AccessDenied", 403)] * times


@pytest.fixture
def store() -> Store:
    return Store({f"key-{number}": f"data {number}".encode() * 100 for number in range(10)})


@pytest.fixture
def processor(queue: MemoryQueue, ledger: Ledger, store: Store) -> Processor:
    return processor_of(queue, ledger, store, SETTINGS)


async def test_algorithm_that_is_not_known_yet_is_added(
    processor: Processor, queue: MemoryQueue, ledger: Ledger, store: Store
) -> None:
    await processor.process(queue.put(message_of(store, "key-1")))
    body = message_of(store, "key-1").replace('["sha256"]', '["sha256","md5"]')
    assert (await processor.process(queue.put(body))).counts == Counts(messages=1, hashed=1)
    assert (await processor.process(queue.put(body))).counts == Counts(messages=1, known=1)


async def test_only_the_failed_entry_is_sent_again_with_one_attempt_more(
    processor: Processor, queue: MemoryQueue, store: Store
) -> None:
    store.failures["key-2"] = denied()
    done = await processor.process(queue.put(message_of(store, "key-1", "key-2", "key-3", attempts=1)))
    assert (done.counts, done.retry_after) == (Counts(messages=1, hashed=2, resent=1), None)
    (again,) = queue.sent
    assert [(task.key, task.attempts) for task in decode(again.body).tasks] == [("key-2", 2)]
    assert decode(again.body).run == "run"
    assert 8 <= again.delay <= 16
    assert done.due == again.delay


async def test_object_past_its_attempts_is_a_dead_letter_with_its_reason(
    processor: Processor, queue: MemoryQueue, dead: MemoryQueue, store: Store
) -> None:
    store.failures["key-2"] = denied()
    received = queue.put(message_of(store, "key-1", "key-2", attempts=4))
    done = await processor.process(received)
    assert (done.counts, done.retry_after) == (Counts(messages=1, hashed=1, failed=1, dead_lettered=1), None)
    (letter,) = dead.sent
    assert letter.attributes == {"reason": "AccessDenied", "message_id": received.id, "run": "run"}
    assert [(task.key, task.attempts) for task in decode(letter.body).tasks] == [("key-2", 0)]
    assert queue.sent == []


async def test_object_without_attempts_left_is_not_read(
    processor: Processor, queue: MemoryQueue, dead: MemoryQueue, store: Store
) -> None:
    done = await processor.process(queue.put(message_of(store, "key-1", attempts=5)))
    assert done.counts == Counts(messages=1, failed=1, dead_lettered=1)
    assert store.reads == []
    assert dead.sent[0].attributes["reason"] == "TooManyAttempts"


@pytest.mark.parametrize("large", [1, 10**9], ids=["large", "small"])
async def test_bytes_that_contradict_s3s_checksum_are_logged_and_noted_and_not_recorded(
    queue: MemoryQueue, dead: MemoryQueue, ledger: Ledger, caplog: pytest.LogCaptureFixture, large: int
) -> None:
    data, stored = b"what lies there", hashlib.sha256(b"what was stored").hexdigest()
    store = Store({"key": data, "good": b"good"}, stored={"key": {"sha256": stored}})
    settings = replace(SETTINGS, large=large)
    processor = processor_of(queue, ledger, store, settings)
    done = await processor.process(queue.put(message_of(store, "key", "good")))
    assert done.counts == Counts(messages=1, hashed=1, failed=1, mismatched=1, dead_lettered=1)
    ours = hashlib.sha256(data).hexdigest()
    (line,) = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert all(part in line for part in ("do not match S3's checksum", ours, stored))
    assert dead.sent[0].attributes["reason"] == "ChecksumMismatch"
    (event,) = await ledger.history("bucket", "key")
    assert (event.what, event.etag, event.size) == ("mismatch", etag_of(data), len(data))
    assert event.detail == {"algorithm": "sha256", "digest": ours, "stored": stored, "source": "s3"}
    assert "key" not in await digests_in(ledger, store)


async def test_digest_that_contradicts_the_ledger_is_a_dead_letter_at_once(
    processor: Processor, queue: MemoryQueue, dead: MemoryQueue, ledger: Ledger, store: Store
) -> None:
    data = store.objects["key-1"]
    await ledger.record(entry_of("bucket", ObjectRef("key-1", etag_of(data), len(data), ""), {"sha256": "00"}))
    body = message_of(store, "key-1").replace('["sha256"]', '["sha256","md5"]')
    done = await processor.process(queue.put(body))
    assert done.counts == Counts(messages=1, failed=1, dead_lettered=1)
    assert dead.sent[0].attributes["reason"] == "DigestConflict"
    assert await digests_in(ledger, store) == {"key-1": "00"}


@pytest.mark.parametrize("large", [1, 10**9], ids=["large", "small"])
async def test_digest_that_the_ledger_cannot_keep_is_a_dead_letter(
    queue: MemoryQueue, dead: MemoryQueue, ledger: Ledger, store: Store, tmp_path: Path, large: int
) -> None:
    settings = replace(SETTINGS, large=large)
    processor = processor_of(queue, ledger, store, settings)
    assert (await processor.process(queue.put(message_of(store, "key-1")))).counts.hashed == 1
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as connection, connection:
        connection.execute("DROP TRIGGER IF EXISTS history_is_never_changed")
        connection.execute("UPDATE digests SET seal = 'x'")
        connection.execute("UPDATE history SET at = 'x'")
    done = await processor.process(queue.put(message_of(store, "key-1", "key-2")))
    assert done.counts == Counts(messages=1, hashed=1, failed=1, dead_lettered=1)
    assert dead.sent[0].attributes["reason"] == "LedgerFault"
    assert "key-1" not in await digests_in(ledger, store)


async def test_without_a_dead_letter_queue_the_message_is_left_for_later(ledger: Ledger, store: Store) -> None:
    queue = MemoryQueue()
    processor = processor_of(queue, ledger, store, SETTINGS)
    store.failures["key-1"] = denied()
    store.failures["key-2"] = denied()
    tried = decode(message_of(store, "key-1", attempts=4))
    both = replace(tried, tasks=(*tried.tasks, *decode(message_of(store, "key-2")).tasks))
    done = await processor.process(queue.put(encode(both)))
    assert done.counts == Counts(messages=1, failed=2)
    assert done.retry_after is not None
    assert queue.sent == []  # else each return of the message would make one more copy of key-2
    done = await processor.process(queue.put("malformed"))
    assert (done.counts, done.retry_after is None) == (Counts(messages=1, failed=1), False)


async def test_dead_letter_queue_that_refuses_leaves_the_message_and_resends_nothing(
    processor: Processor, queue: MemoryQueue, dead: MemoryQueue, store: Store
) -> None:
    dead.broken = QueueError("the queue cannot be reached")
    store.failures["key-1"] = denied()
    done = await processor.process(queue.put(message_of(store, "key-1", attempts=4)))
    assert (done.counts, done.retry_after is None, queue.sent) == (Counts(messages=1, failed=1), False, [])


def test_backoff_doubles_up_to_what_sqs_allows(processor: Processor) -> None:
    for failures, least, most in ((1, 4, 8), (2, 8, 16), (4, 32, 64), (8, 450, 900), (99, 450, 900)):
        delays = [processor.backoff(failures) for _ in range(100)]
        assert least <= min(delays) <= max(delays) <= most
        assert len(set(delays)) > 1


async def test_digests_that_arrive_during_a_write_are_written_together(
    queue: MemoryQueue, ledger: Ledger, store: Store
) -> None:
    class Slow(Hooked):
        """Each write waits for `free`. batches: number of entries of each."""

        free, batches = asyncio.Event(), list[int]()

        async def record_many(self, entries: Sequence[Entry]) -> list[bool | DigestConflict]:
            self.batches.append(len(entries))
            await self.free.wait()
            return await super().record_many(entries)

    slow = Slow(ledger)
    processor = processor_of(queue, slow, store, SETTINGS)
    work = asyncio.create_task(processor.process(queue.put(message_of(store, *store.objects))))
    await until(lambda: len(slow.batches) == 1 and len(store.reads) == 10 and store.now == 0)
    slow.free.set()
    assert (await work).counts == Counts(messages=1, hashed=10)
    assert slow.batches == [1, 9]


async def test_log_names_message_run_and_code_and_cuts_the_key(
    processor: Processor, queue: MemoryQueue, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    key = "secret\n" * 100
    store.objects[key] = b"x"
    store.failures[key] = denied()
    with caplog.at_level(logging.WARNING):
        received = queue.put(message_of(store, key))
        await processor.process(received)
    (line,) = caplog.messages
    assert line.startswith(f"run run, message {received.id}: 'secret\\n")
    assert line.endswith("AccessDenied, attempt 1")
    assert len(line) < 200
    assert "\n" not in line


async def test_expired_credentials_end_all_work(processor: Processor, queue: MemoryQueue, store: Store) -> None:
    store.failures["key-1"] = [CallFailed("GetObject", "ExpiredToken", 400)]
    done = await processor.process(queue.put(message_of(store, "key-1", "key-2")))
    assert "expired" in str(done.doom)
    assert done.retry_after is not None
    assert queue.sent == []


async def test_fault_of_ours_leaves_the_message_and_is_logged(
    queue: MemoryQueue, ledger: Ledger, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    buggy = Hooked(ledger, failing(ZeroDivisionError("a bug")))
    processor = processor_of(queue, buggy, store, SETTINGS)
    done = await processor.process(queue.put(message_of(store, "key-1")))
    assert (done.counts.failed, done.doom, done.retry_after is None) == (1, None, False)
    assert "because the worker failed" in caplog.text
