"""Kill workers at random moments, again and again, while messages arrive; check the end state.

Real parts: a worker in a process of its own, SQS's protocol from a server on 127.0.0.1, a SQLite ledger, S3's from the
stub. Only kill -9 ends a worker, but the last one.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import multiprocessing
import random
import sqlite3
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, closing
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Final

import boto3

from auditor.aws.connection import Connection
from auditor.config.settings import Settings
from auditor.hashing.queue.message import HashTask, pack
from auditor.hashing.queue.message import encode as encoded
from auditor.hashing.worker.loop import Pace, Worker, open_processor
from auditor.hashing.worker.options import WorkerOptions
from auditor.ledger import open_ledger
from auditor.model.object import ObjectRef
from auditor.s3.engines import ENGINES
from auditor.s3.engines.base import Engine
from tests.support.servers.stub import StubServer
from tests.support.servers.stub_faults import BLACK_HOLE, Fault

BUCKET: Final = "audited"
ALGORITHMS: Final = ("sha256", "md5")
KIB: Final = 1024
LARGE: Final = 1024 * KIB
VISIBILITY: Final = 2
"""Seconds until the messages of a killed worker come again."""
LEASE: Final = 1.0
IN_MID_HASH: Final = 20
"""One of so many kills comes for certain while a large object is read."""
SETTINGS: Final = WorkerOptions(
    buffer_size=64 * KIB, large=LARGE, lease_seconds=LEASE, save_seconds=0.0, retry_base=1.0, max_attempts=20
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """The settings of a worker as plain text, for another process."""

    s3: str
    queue: str
    ledger: str


@dataclass(slots=True)
class Round:
    """The objects of the rounds. digests: by key and ETag, of the bytes. moments: seconds before each kill."""

    digests: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)
    sizes: dict[tuple[str, str], int] = field(default_factory=dict)
    moments: list[float] = field(default_factory=list)
    killed: int = 0


def work(places: Places, idle: float) -> None:
    """The life of one worker process."""
    asyncio.run(_work(places, idle))


async def _work(places: Places, idle: float) -> None:
    def engine(bucket: str) -> AbstractAsyncContextManager[Engine]:
        return ENGINES["direct"](
            Connection(bucket=bucket, region="us-east-1", endpoint_url=places.s3, concurrency=SETTINGS.concurrency)
        )

    settings = Settings(queue=places.queue, ledger=places.ledger)
    async with open_processor(settings, SETTINGS, engine) as processor:
        pace = Pace(messages=4, idle=idle, poll=1, visibility=VISIBILITY, heartbeat=VISIBILITY / 3)
        await Worker(processor, pace).run()


class Killing:
    """sqs: a client. The same seed gives the same rounds, but for the timing of the machine."""

    def __init__(self, stub: StubServer, sqs: Any, places: Places, seed: int) -> None:
        self.found = Round()
        self._stub = stub
        self._sqs = sqs
        self._places = places
        self._chance = random.Random(seed)
        self._processes = multiprocessing.get_context("forkserver")
        self._processes.set_forkserver_preload([__name__, "auditor.aws.session"])
        self._numbers = iter(range(10**9))
        self._large: set[str] = set()

    def run(self, kills: int) -> None:
        """Kill a worker so many times, with new messages each time, then let one finish. Raises TimeoutError."""
        for number in range(kills):
            self._send()
            if number % IN_MID_HASH == 0 and self._large:
                self._kill_in_mid_hash()
            else:
                self._kill_at_any_moment()
        last, left = self._start(idle=VISIBILITY + 2.0), math.inf
        while last.is_alive():
            last.join(120)  # a busy machine may have left many messages to the last worker
            before, left = left, waiting(self._sqs, self._places.queue)
            if last.is_alive() and left >= before:
                last.kill()
                raise TimeoutError(f"something is stuck: the last worker has left {left} messages for two minutes")
        assert last.exitcode == 0

    def _kill_at_any_moment(self) -> None:
        asked = len(self._stub.requests)
        worker = self._start(idle=60.0)
        moment = self._chance.uniform(0.15, 1.2)
        self.found.moments.append(moment)
        if self._chance.random() < 0.5:  # counted from its first object: on a busy machine a process begins late
            self._wait_for(lambda: len(self._stub.requests) > asked, worker)
        worker.join(moment)
        self._kill(worker)

    def _kill_in_mid_hash(self) -> None:
        """Kill a worker that waits for the bytes of a large object, however long the machine needs to get there."""
        held: list[str] = []

        def hold(operation: str, key: str, nth: int) -> Fault | None:
            if operation != "GetObject" or key not in self._large:
                return None
            held.append(key)
            return BLACK_HOLE

        self._stub.faults = [hold]
        worker = self._start(idle=60.0)
        self._wait_for(lambda: held, worker)
        self._kill(worker)
        self._stub.faults = []
        assert held

    def _kill(self, worker: BaseProcess) -> None:
        assert worker.is_alive(), "the worker ended by itself"
        worker.kill()
        worker.join()
        self.found.killed += worker.exitcode == -9

    def _wait_for(self, condition: Callable[[], object], worker: BaseProcess) -> None:
        deadline = time.monotonic() + 600
        while not condition() and worker.is_alive() and time.monotonic() < deadline:
            time.sleep(0.02)

    def _start(self, idle: float) -> BaseProcess:
        process = self._processes.Process(target=work, args=(self._places, idle), daemon=True)
        process.start()
        return process

    def _send(self) -> None:
        """A few small objects and now and then a large one; some messages twice, in any order."""
        tasks = [self._object(self._chance.randrange(20 * KIB)) for _ in range(self._chance.randrange(4, 16))]
        if self._chance.random() < 0.9:
            tasks.append(self._object(self._chance.randrange(4 * LARGE, 12 * LARGE)))
            self._large.add(tasks[-1].key)
        self._chance.shuffle(tasks)
        bodies = [encoded(one) for one in pack("run", BUCKET, ALGORITHMS, tasks[:5])]
        bodies += [encoded(one) for one in pack("run", BUCKET, ALGORITHMS, tasks[5:])]
        bodies += self._chance.sample(bodies, k=self._chance.randrange(len(bodies) + 1))
        self._chance.shuffle(bodies)
        for body in bodies:
            self._sqs.send_message(QueueUrl=self._places.queue, MessageBody=body)

    def _object(self, size: int) -> HashTask:
        data = self._chance.randbytes(size)
        item = self._stub.put(BUCKET, f"key-{next(self._numbers):05}", data)
        identity = item.key, item.etag
        self.found.digests[identity] = {name: hashlib.new(name, data).hexdigest() for name in ALGORITHMS}
        self.found.sizes[identity] = size
        return HashTask(item.key, None, item.etag, size)


def killed_workers(stub: StubServer, sqs_url: str, folder: Path, *, kills: int, seed: int) -> None:
    """Run all rounds on a server that speaks SQS: nothing is lost, hashed wrongly, or stuck."""
    sqs = boto3.client("sqs", endpoint_url=sqs_url)
    dead = sqs.create_queue(QueueName="dead")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    policy = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": 1000})
    queue = sqs.create_queue(QueueName="hash", Attributes={"RedrivePolicy": policy})["QueueUrl"]
    file = folder / "ledger.db"
    places = Places(s3=stub.url, queue=queue, ledger=f"sqlite:{file}")
    killing = Killing(stub, sqs, places, seed)
    killing.run(kills)
    found = killing.found
    assert found.killed == kills
    assert asyncio.run(_recorded(places.ledger, found)) == found.digests
    assert (waiting(sqs, queue), waiting(sqs, dead)) == (0, 0)
    assert _taken_over(file) >= kills // IN_MID_HASH, "too few were killed in mid-hash to show anything"


async def _recorded(uri: str, found: Round) -> dict[tuple[str, str], dict[str, str]]:
    """The ledger's digests of the same objects."""
    refs = [ObjectRef(key, etag, found.sizes[key, etag], "") for key, etag in found.digests]
    async with open_ledger(uri) as ledger:
        known = await ledger.known(BUCKET, refs, ALGORITHMS)
    return {(ref.key, ref.etag): dict(one) for ref, one in zip(refs, known, strict=True)}


def waiting(sqs: Any, url: str) -> int:
    """Messages on a queue, hidden and delayed ones included."""
    names = [f"ApproximateNumberOfMessages{kind}" for kind in ("", "NotVisible", "Delayed")]
    found = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"]
    return sum(int(found[name]) for name in names)


def _taken_over(file: Path) -> int:
    """Large objects that one worker began and another finished."""
    with closing(sqlite3.connect(file)) as connection:
        ((count,),) = connection.execute("SELECT count(*) FROM leases WHERE fence > 1").fetchall()
    return int(count)
