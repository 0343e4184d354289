"""A campaign against the hashing worker: processes that are killed, doubled and outdated messages, objects that are
overwritten and deleted, an outage of the ledger, and clocks that disagree. Its end state is compared with a truth that
the campaign writes down by itself.

Real parts: workers in processes of their own, SQS's protocol from a server on 127.0.0.1, the ledger, S3 from the stub.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import multiprocessing
import random
import sqlite3
import time
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Final

import boto3

from auditor.hashing.queue.message import HashMessage, HashTask
from auditor.hashing.queue.message import encode as encoded
from auditor.ledger import open_ledger
from tests.support.chaos_worker import KIB, LARGE, Places, work
from tests.support.servers.stub import StubServer
from tests.support.servers.stub_faults import ACCESS_DENIED, BLACK_HOLE, Fault

BUCKET: Final = "audited"
APART: Final = 400.0
"""Seconds between the slowest clock and the fastest one."""
POISON: Final = ("poison", '{"v":2}', '{"Records":[{}]}')
KILLED: Final = 0.03
"""Share of the workers that is killed in a round."""
IN_MID_HASH: Final = 8
"""In one of so many rounds all workers are killed while one of them reads a large object."""
FORBIDDEN: Final = "forbidden"
"""A key that S3 lets nobody read."""


@dataclass(slots=True)
class Truth:
    """The objects as the campaign made them. digests: SHA-256 by key and ETag, of every version that ever was. current:
    ETag of each key, None if it is deleted.
    """

    digests: dict[tuple[str, str], str] = field(default_factory=dict)
    current: dict[str, str | None] = field(default_factory=dict)

    @property
    def expected(self) -> dict[str, str]:
        """The digest of each object that is there and may be read."""
        present = {key: etag for key, etag in self.current.items() if etag and key != FORBIDDEN}
        return {key: self.digests[key, etag] for key, etag in present.items()}


@dataclass(slots=True)
class Tally:
    """The numbers of a campaign, for its summary line. refusals: invocations that met the outage."""

    messages: int = 0
    kills: int = 0
    refusals: int = 0
    overwritten: int = 0
    deleted: int = 0
    in_mid_hash: int = 0


class Campaign:
    """A campaign of `workers` processes. The same seed gives the same objects and messages; the kills depend on the
    machine's timing too.
    """

    def __init__(self, stub: StubServer, sqs: Any, places: Places, *, workers: int, seed: int) -> None:
        self.truth, self.tally = Truth(), Tally()
        self._stub, self._sqs, self._places = stub, sqs, places
        self._chance = random.Random(seed)
        self._processes = multiprocessing.get_context("forkserver")
        self._processes.set_forkserver_preload([work.__module__])
        self._workers: list[BaseProcess | None] = [None] * workers
        self._sequence = 0
        self._sent: list[str] = []
        self._held: list[str] = []
        stub.faults = [self._refused]

    def run(self, *, rounds: int, outage: tuple[int, int], pause: float) -> None:
        """Send, kill and start for so many rounds. outage: first and last round in which the ledger refuses."""
        self._send(*POISON, self._put(FORBIDDEN, 100))
        for number in range(rounds):
            if number == outage[0]:
                Path(self._places.outage).touch()
            if number == outage[1]:
                self._wait_for_refusals()
                Path(self._places.outage).unlink()
            self._change()
            if number % IN_MID_HASH == IN_MID_HASH - 1 and not outage[0] <= number < outage[1]:
                self._kill_in_mid_hash(f"held-{number:04}")
            self._kill(number)
            self._start()
            time.sleep(pause)
        self._finish()

    def _wait_for_refusals(self) -> None:
        """Wait until a function has met the outage. On a busy machine a process takes long to begin."""
        deadline = time.monotonic() + 60
        refusals = Path(self._places.refusals)
        while not refusals.exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        self.tally.refusals = refusals.stat().st_size

    def _finish(self) -> None:
        """Let the workers come to an end. Raise TimeoutError if the queue does not become empty: a message is hidden as
        long as the outage was, at most.
        """
        deadline = time.monotonic() + 900
        while waiting(self._sqs, self._places.queue):
            self._start()
            time.sleep(0.5)
            if time.monotonic() > deadline:
                self.stop()
                raise TimeoutError(f"{waiting(self._sqs, self._places.queue)} messages are stuck")
        self.stop()

    def stop(self) -> None:
        for process in filter(None, self._workers):
            process.kill()
            process.join()

    def _start(self) -> None:
        """Start each worker that is not alive. Every second one is a function; every clock is another."""
        last = max(1, len(self._workers) - 1)
        for place, process in enumerate(self._workers):
            if process is not None and process.is_alive():
                continue
            places = replace(self._places, ahead=APART * (place / last - 0.5), function=place % 2 == 1)
            self._workers[place] = self._processes.Process(target=work, args=(places,), daemon=True)
            self._workers[place].start()  # type: ignore[union-attr]

    def _kill(self, number: int) -> None:
        """Kill some of the workers, and in every fourth round one at least."""
        surely = self._chance.randrange(len(self._workers)) if number % 4 == 3 else None
        for place, process in enumerate(self._workers):
            if process is not None and (self._chance.random() < KILLED or place == surely):
                process.kill()
                process.join()
                self.tally.kills += process.exitcode == -9

    def _kill_in_mid_hash(self, key: str) -> None:
        """Kill all workers when one of them waits for the bytes of this object, however long it takes to get there."""
        self._held = [key]
        self._send(self._put(key, 2 * LARGE))
        deadline = time.monotonic() + 300
        while self._held and time.monotonic() < deadline:
            self._start()
            time.sleep(0.1)
        assert not self._held, f"no worker reads {key}"
        self.stop()
        self._workers = [None] * len(self._workers)
        self.tally.in_mid_hash += 1

    def _refused(self, operation: str, key: str, _: int) -> Fault | None:
        """Refuse the key that nobody may read, and let the first reader of a held key wait for its bytes."""
        if operation != "GetObject":
            return None
        if key in self._held:
            self._held.remove(key)
            return BLACK_HOLE
        return ACCESS_DENIED if key == FORBIDDEN else None

    def _change(self) -> None:
        """Make, overwrite and delete objects, and send their messages: some twice, some late, in any order."""
        bodies = []
        for _ in range(self._chance.randrange(2, 6)):
            key = f"key-{self._chance.randrange(len(self.truth.current) + 4):04}"
            if self.truth.current.get(key) and self._chance.random() < 0.2:
                bodies.append(self._delete(key))
            else:
                large = self._chance.random() < 0.1
                bodies.append(self._put(key, self._chance.randrange(2 * LARGE if large else 20 * KIB)))
        bodies += self._chance.sample(bodies, k=self._chance.randrange(len(bodies)))
        bodies += self._chance.sample(self._sent, k=min(2, len(self._sent)))
        self._chance.shuffle(bodies)
        self._send(*bodies)

    def _put(self, key: str, size: int) -> str:
        """Put an object of new bytes. Return its notification, or now and then a message of an audit."""
        data = self._chance.randbytes(size + 8)
        item = self._stub.put(BUCKET, key, data)
        self.tally.overwritten += key in self.truth.current
        self.truth.current[key] = item.etag
        self.truth.digests[key, item.etag] = hashlib.sha256(data).hexdigest()
        if self._chance.random() < 0.3:
            self._send(encoded(HashMessage("run", BUCKET, ("sha256",), (HashTask(key, None, item.etag, len(data)),))))
        return self._event("ObjectCreated:Put", {"key": key, "size": len(data), "eTag": item.etag})

    def _delete(self, key: str) -> str:
        self._stub.world.buckets[BUCKET].delete(key)
        self.truth.current[key] = None
        self.tally.deleted += 1
        return self._event("ObjectRemoved:Delete", {"key": key})

    def _event(self, name: str, entry: dict[str, Any]) -> str:
        self._sequence += 1
        head = {"eventVersion": "2.1", "eventSource": "aws:s3", "eventTime": "2026-01-02T03:04:05.000Z"}
        entry = entry | {"sequencer": f"{self._sequence:016X}"}
        event = {"eventName": name, "s3": {"bucket": {"name": BUCKET}, "object": entry}}
        return json.dumps({"Records": [head | event]})

    def _send(self, *bodies: str) -> None:
        for start in range(0, len(bodies), 10):
            part = bodies[start : start + 10]
            entries = [{"Id": str(place), "MessageBody": body} for place, body in enumerate(part)]
            answer = self._sqs.send_message_batch(QueueUrl=self._places.queue, Entries=entries)
            assert not answer.get("Failed"), answer
        self._sent += bodies
        self.tally.messages += len(bodies)


def waiting(sqs: Any, url: str) -> int:
    """Messages on a queue, hidden and delayed ones included."""
    names = [f"ApproximateNumberOfMessages{kind}" for kind in ("", "NotVisible", "Delayed")]
    found = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"]
    return sum(int(found[name]) for name in names)


def campaign(
    stub: StubServer,
    sqs_url: str,
    folder: Path,
    ledger: str,
    *,
    dynamodb: str | None = None,
    workers: int,
    seed: int,
    rounds: int,
    outage: tuple[int, int],
    pause: float,
) -> str:
    """Run a campaign on a server that speaks SQS. Check that the ledger is equal to the truth, that every dead letter
    has a reason, and that the queue is empty. Return the summary line.
    """
    sqs = boto3.client("sqs", endpoint_url=sqs_url)
    dead = sqs.create_queue(QueueName=f"dead-{seed}-{workers}")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    policy = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": 40})
    queue = sqs.create_queue(QueueName=f"hash-{seed}-{workers}", Attributes={"RedrivePolicy": policy})["QueueUrl"]
    places = Places(
        s3=stub.url,
        queue=queue,
        ledger=ledger,
        dynamodb=dynamodb,
        outage=str(folder / "outage"),
        refusals=str(folder / "refusals"),
    )
    run = Campaign(stub, sqs, places, workers=workers, seed=seed)
    began = time.monotonic()
    try:
        run.run(rounds=rounds, outage=outage, pause=pause)
    finally:
        run.stop()
    truth, tally = run.truth, run.tally
    assert asyncio.run(_differences(ledger, dynamodb, truth)) == []
    letters = _letters(sqs, dead)
    assert letters.keys() == {FORBIDDEN, *POISON}, letters
    assert letters[FORBIDDEN] == {"AccessDenied"}, letters
    assert not any(None in reasons for reasons in letters.values()), letters
    assert waiting(sqs, queue) == 0
    assert tally.kills >= rounds // 20, "too few were killed to show anything"
    taken_over = _taken_over(ledger)
    assert taken_over is None or taken_over >= tally.in_mid_hash
    return (
        f"seed {seed}: {tally.messages:,} messages in {rounds} rounds, {outage[1] - outage[0]} of them an outage,"
        f" {len(truth.digests):,} object versions ({tally.overwritten:,} overwrites, {tally.deleted:,} deletions),"
        f" {workers} workers with clocks {APART:.0f} s apart, {tally.kills:,} killed,"
        f" {tally.refusals:,} invocations refused by the ledger;"
        f" {len(truth.expected):,} digests equal to the truth, 0 wrong, {len(letters)} letters with their reasons,"
        f" queue empty, {time.monotonic() - began:.0f} s"
    )


async def _differences(uri: str, dynamodb: str | None, truth: Truth) -> list[object]:
    """Return the ledger's digests that are wrong, and the objects whose newest digest is missing or of other bytes."""
    wrong: list[object] = []
    newest: dict[str, str] = {}
    async with open_ledger(uri, region="us-east-1", endpoint_url=dynamodb) as ledger:
        async for record in ledger.subjects(BUCKET):
            for version in record.versions:
                newest[record.key] = version.digests["sha256"].digest
                if truth.digests.get((record.key, version.etag)) != newest[record.key]:
                    wrong.append((record.key, version))
    return wrong + [key for key, digest in truth.expected.items() if newest.get(key) != digest]


def _letters(sqs: Any, dead: str) -> dict[str, set[str | None]]:
    """Return the reasons by body; the letters of forbidden objects under one name. A letter may be there twice."""
    found: dict[str, set[str | None]] = {}
    receive = partial(sqs.receive_message, QueueUrl=dead, MaxNumberOfMessages=10, VisibilityTimeout=600)
    while messages := receive(MessageAttributeNames=["All"]).get("Messages"):
        for one in messages:
            name = FORBIDDEN if FORBIDDEN in one["Body"] else one["Body"]
            reason = one.get("MessageAttributes", {}).get("reason")
            found.setdefault(name, set()).add(reason and reason["StringValue"])
    return found


def _taken_over(ledger: str) -> int | None:
    """Return the number of large objects that one worker began and another finished; None without SQLite."""
    kind, _, file = ledger.partition(":")
    if kind != "sqlite":
        return None
    with closing(sqlite3.connect(file)) as connection:
        ((count,),) = connection.execute("SELECT count(*) FROM leases WHERE fence > 1").fetchall()
    return int(count)
