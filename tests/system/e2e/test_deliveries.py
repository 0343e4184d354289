"""Messages that are doubled, late or malformed, or whose worker is killed: none is lost, and all digests are right."""

from __future__ import annotations

import hashlib
import json
import random
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from auditor.hashing.queue.message import HashTask
from tests.support.servers.stub import StubServer
from tests.support.servers.stub_faults import (
    ACCESS_DENIED,
    BLACK_HOLE,
    CUT,
    RESET,
    SLOW_DOWN,
    STALL,
    Fault,
    random_faults,
)
from tests.system.e2e.deployment import Deployment
from tests.system.e2e.queues import Queues, message
from tests.system.e2e.system import Make, System, expected, told

Plan = Callable[[str, str, int], Fault | None]
"""One of the stub's: operation, key, and how often that was asked."""


@pytest.fixture
def impatient(deployment: Deployment, queues: Queues) -> Iterator[None]:
    """The hash queue with a visibility timeout of less than half a minute, and no more than two receipts."""
    sqs, url = queues.sqs, deployment.outputs()["HashQueueUrl"]
    names = ["VisibilityTimeout", "RedrivePolicy"]
    before = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"]
    policy = json.dumps(json.loads(before["RedrivePolicy"]) | {"maxReceiveCount": 2})
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"VisibilityTimeout": "26", "RedrivePolicy": policy})
    yield
    sqs.set_queue_attributes(QueueUrl=url, Attributes=before)


@pytest.fixture
def stubbed(stub: StubServer, make: Make, bucket: str) -> System:
    """The worker reads from the stub, where the bucket is too. Its margin is a minute away, and it is killed first."""
    return reading(make, stub, bucket, 90.0)


def reading(make: Make, stub: StubServer, bucket: str, seconds: float) -> System:
    stub.world.add(bucket)
    return make(hashing={"timeout": seconds, "variables": {"AWS_ENDPOINT_URL_S3": stub.url}})


def put(stub: StubServer, bucket: str, key: str, data: bytes) -> HashTask:
    item = stub.put(bucket, key, data)
    return HashTask(item.key, None, item.etag, item.size)


def reads(stub: StubServer, key: str) -> int:
    return sum(1 for call in stub.calls if call.operation == "GetObject" and call.key == key)


def killing(system: System, key: str, *, times: int = 99, when: Callable[[], bool] = lambda: True) -> Plan:
    """Kills the worker that asks for an object, so many times, when it has come as far as that."""

    def end() -> None:
        while not when():
            time.sleep(0.05)
        system.local.kill(key)

    def fault(operation: str, asked: str, nth: int) -> Fault | None:
        if operation != "GetObject" or asked != key or nth > times:
            return None
        threading.Thread(target=end, daemon=True).start()
        return BLACK_HOLE

    return fault


@pytest.mark.usefixtures("impatient")
def test_a_worker_that_is_killed_in_mid_hash_loses_nothing_and_repeats_nothing(
    stubbed: System, stub: StubServer, bucket: str
) -> None:
    objects = {"done": b"done", "slow": bytes(range(256)) * 8192}
    tasks = [put(stub, bucket, key, data) for key, data in objects.items()]
    stub.faults = [killing(stubbed, "slow", when=lambda: "done" in stubbed.digests(bucket))]
    stubbed.send("HashQueueUrl", message(bucket, *tasks))
    assert stubbed.poller.poll() == 1
    assert b"Runtime exited" in stubbed.local.invoked[0].answer.payload
    assert stubbed.digests(bucket) == expected({"done": b"done"})
    stub.faults = []
    stubbed.poller.drain()
    assert told(stubbed.local.invoked[1].answer) == {"batchItemFailures": []}
    assert stubbed.digests(bucket) == expected(objects)
    assert len(stubbed.items(bucket)) == len(objects)
    assert (reads(stub, "done"), reads(stub, "slow")) == (1, 2)
    assert stubbed.letters() == []


@pytest.mark.usefixtures("impatient")
def test_a_message_that_kills_every_worker_goes_to_the_dead_letters_alone(
    stubbed: System, stub: StubServer, bucket: str
) -> None:
    stub.faults = [killing(stubbed, "deadly")]
    deadly = message(bucket, put(stub, bucket, "deadly", b"deadly"))
    stubbed.send("HashQueueUrl", deadly)
    stubbed.send("HashQueueUrl", message(bucket, put(stub, bucket, "quick", b"quick")))
    stubbed.poller.drain()
    errors = [one for one in stubbed.local.invoked if one.answer.error]
    assert len(errors) == 2
    url = stubbed.deployment.outputs()["DeadLetterQueueUrl"]
    assert stubbed.queues.letters(url) == [(deadly, None)], "it was the queue that gave up"
    assert stubbed.digests(bucket) == expected({"quick": b"quick"})


def first_time(keys: set[str], fault: Fault) -> Plan:
    return lambda operation, key, nth: fault if operation == "GetObject" and nth == 1 and key in keys else None


@pytest.mark.usefixtures("impatient")
def test_whatever_befalls_them_no_message_is_lost_and_no_object_has_two_digests(
    make: Make, stub: StubServer, bucket: str
) -> None:
    stubbed = reading(make, stub, bucket, 24.0)  # a read that stalls lasts until the margin, twelve seconds
    chance = random.Random(7)
    data = {f"key-{number:02}": chance.randbytes(chance.randrange(200_000)) for number in range(24)}
    tasks = {key: put(stub, bucket, key, content) for key, content in data.items()}
    bodies = [message(bucket, *(tasks[key] for key in list(data)[start : start + 3])) for start in range(0, 24, 3)]
    overwritten = {"key-04": b"newer", "key-13": b"newest"}
    newer = {key: put(stub, bucket, key, content) for key, content in overwritten.items()}
    stub.world.buckets[bucket].delete("key-20")
    poison = ["poison", message(bucket, tasks["key-00"]).replace('"v":1', '"v":9')]
    sent = [*bodies, *chance.choices(bodies[:6], k=4), *(message(bucket, task) for task in newer.values()), *poison]
    chance.shuffle(sent)
    stub.faults = [
        killing(stubbed, "key-07", times=1),
        first_time({"key-16"}, STALL),  # its worker leaves it at the margin
        first_time({"key-19"}, ACCESS_DENIED),  # its message comes once: it is sent again, or lost
        random_faults(0.2, seed=7, kinds=(SLOW_DOWN, RESET, CUT), operations={"GetObject"}),
    ]
    for body in sent:
        stubbed.send("HashQueueUrl", body)
    stubbed.poller.drain()
    del data["key-20"]
    current = tasks | newer
    assert stubbed.identities(bucket) == {
        (key, current[key].etag): hashlib.sha256(content).hexdigest() for key, content in (data | overwritten).items()
    }
    assert sorted(stubbed.letters()) == sorted(poison)
    killed = [one for one in stubbed.local.invoked if b"Runtime exited" in one.answer.payload]
    assert killed
    assert reads(stub, "key-07") > 1
    assert reads(stub, "key-19") > 1
