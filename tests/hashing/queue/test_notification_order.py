"""S3's events in any order, doubled and spread over messages: the ledger ends where the bucket did."""

from __future__ import annotations

import json
import random
from typing import Any
from urllib.parse import quote_plus

import pytest

from auditor.ledger.base import KeyRecord, Ledger
from tests.support.fakes.hashing import MemoryQueue, Store, digests_in, etag_of, processor_of, sha256_of

KEYS = ["plain", "a key+1", "caf\u00e9/100%41", "last"]


def lives(randomness: random.Random) -> tuple[dict[str, bytes], list[dict[str, Any]]]:
    """What a bucket without versions holds in the end, and S3's records of how it came to that."""
    objects: dict[str, bytes] = {}
    records: list[dict[str, Any]] = []
    for key in KEYS:
        number = randomness.randrange(16**8)
        for step in range(randomness.randint(1, 6)):
            number += randomness.randint(1, 1000)
            sequencer = f"{number:012X}".rstrip("0")  # of any length: S3 says to pad it on the right
            entry: dict[str, Any] = {
                "key": quote_plus(key),
                "sequencer": randomness.choice([sequencer, sequencer.lower()]),
            }
            if key in objects and randomness.random() < 0.4:
                del objects[key]
                event = "ObjectRemoved:Delete"
            else:
                data = objects[key] = f"{key} {step}".encode() * randomness.randint(1, 100)
                entry |= {"size": len(data), "eTag": etag_of(data)}
                event = "ObjectCreated:Put"
            records.append(
                {
                    "eventVersion": "2.1",
                    "eventSource": "aws:s3",
                    "eventTime": f"2026-01-02T03:04:{step:02}.000Z",
                    "eventName": event,
                    "s3": {"bucket": {"name": "bucket"}, "object": entry},
                }
            )
    return objects, records


def in_messages(records: list[dict[str, Any]], randomness: random.Random) -> list[str]:
    """The records shuffled, some of them twice, a few to a message."""
    told = records + randomness.sample(records, len(records) // 3)
    randomness.shuffle(told)
    bodies = []
    while told:
        size = randomness.randint(1, 4)
        bodies.append(json.dumps({"Records": told[:size]}))
        told = told[size:]
    return bodies


@pytest.mark.parametrize("seed", range(6))
async def test_the_ledger_ends_where_the_bucket_did(
    seed: int, queue: MemoryQueue, dead: MemoryQueue, ledger: Ledger
) -> None:
    randomness = random.Random(seed)
    objects, records = lives(randomness)
    store = Store(objects)
    processor = processor_of(queue, ledger, store)
    for body in in_messages(records, randomness):
        done = await processor.process(queue.put(body))
        assert (done.retry_after, done.doom, done.counts.failed, done.counts.resent) == (None, None, 0, 0)
    subjects = {key: await ledger.subject("bucket", key) for key in KEYS}
    assert await digests_in(ledger, store) == sha256_of(objects)
    assert {key for key, subject in subjects.items() if gone(subject)} == set(KEYS) - set(objects)
    assert dead.sent == queue.sent == []


def gone(subject: KeyRecord | None) -> bool:
    assert subject is not None  # a notification told of it
    return subject.deleted_at is not None
