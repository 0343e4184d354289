"""What was deployed, run as Lambda runs it: the schedule's event, the queues, a deadline, a killed worker."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from auditor.messages import HashMessage, HashTask, encode
from tests.e2e.deployment import AUDITED, Deployment
from tests.e2e.environment import Machine
from tests.e2e.poller import Poller
from tests.e2e.runtime import LocalLambda
from tests.e2e.shares import needs_groups
from tests.e2e.system import System, expected, keys, taken, told
from tests.servers.clients import BUCKET
from tests.servers.stub import StubServer
from tests.servers.stub_faults import BLACK_HOLE, on_keys

NIGHT = {"a.txt": b"a", "b/c d+%41.txt": b"c", "empty": b""}


Make = Callable[..., System]


@pytest.fixture
def make(deployment: Deployment, machine: Machine, tmp_path: Path) -> Iterator[Make]:
    """System with the functions as deployed, but for what a test changes: `audit={"timeout": 5.0}`, and variables."""
    sqs = deployment.client("sqs")
    for url in sqs.list_queues()["QueueUrls"]:
        while taken(sqs, url):
            pass
    with ExitStack() as stack:

        def made(*, shared: bool = False, **changed: dict[str, Any]) -> System:
            functions = deployment.functions()
            for name, changes in changed.items():
                variables = functions[name].variables | changes.pop("variables", {})
                functions[name] = replace(functions[name], variables=variables, **changes)
            local = LocalLambda(functions.values(), machine, tmp_path, endpoint=deployment.url, shared=shared)
            stack.enter_context(local)
            return System(deployment, local, Poller(sqs, local, deployment.mappings()))

        yield made


@pytest.fixture
def bucket(deployment: Deployment) -> str:
    """An empty bucket of the test's own."""
    name = f"own-{uuid4().hex[:12]}"
    deployment.client("s3").create_bucket(Bucket=name)
    return name


def test_what_is_unchanged_is_not_deployed_again(deployment: Deployment) -> None:
    assert "No changes to deploy" in deployment.osls("deploy")


def test_the_schedules_event_audits_the_configured_bucket_and_the_worker_fills_the_ledger(make: Make) -> None:
    system = make()
    system.deployment.client("s3").create_bucket(Bucket=AUDITED)
    system.put(AUDITED, NIGHT)
    system.fire(system.deployment.schedules_input())
    (first,) = system.summaries()
    assert first["complete"]
    assert first["coverage"]["audited"] == len(NIGHT)
    assert first["hashing"]["queued"] == len(NIGHT)
    system.poller.drain()
    assert system.digests(AUDITED) == expected(NIGHT)
    assert system.letters() == []
    report = system.report(AUDITED)
    assert json.loads(report[f"run={first['run']}/summary.json"]) == first
    assert b"<html" in report[f"run={first['run']}/report.html"]
    assert '"RunsComplete"' in system.local.logs()

    system.fire(system.deployment.schedules_input())
    second = system.summaries()[1]
    assert second["hashing"]["known"] == len(NIGHT)
    assert second["hashing"]["queued"] == 0
    assert json.loads(system.report(AUDITED)["latest.json"])["runs"] == {"": second["run"]}


@needs_groups
def test_the_memory_of_each_function_and_the_cpu_that_it_buys_are_enough(make: Make, bucket: str) -> None:
    system = make(shared=True)
    objects = {"large": bytes(50_000_000)} | {f"key-{number:02}": b"small" for number in range(20)}
    system.put(bucket, objects)
    system.fire({"bucket": bucket})
    system.poller.drain()
    assert system.summaries()[0]["complete"]
    assert system.digests(bucket) == expected(objects)
    memory = {function.name: function.memory for function in system.deployment.functions().values()}
    assert {name for name, _ in system.local.peaks()} == memory.keys()
    assert all(0 < peak <= memory[name] for name, peak in system.local.peaks()), system.local.peaks()


def test_a_new_object_is_hashed_because_s3_tells_of_it(make: Make, bucket: str) -> None:
    system = make()
    queue = system.deployment.outputs()["NotificationQueueArn"]
    system.deployment.client("s3").put_bucket_notification_configuration(
        Bucket=bucket,
        NotificationConfiguration={"QueueConfigurations": [{"QueueArn": queue, "Events": ["s3:ObjectCreated:*"]}]},
    )
    new = {"new/object 1+%.bin": b"new"}
    system.put(bucket, new)
    system.poller.drain()
    assert system.digests(bucket) == expected(new)
    assert system.letters() == []


def test_a_poison_message_goes_to_the_dead_letters_alone(make: Make, bucket: str) -> None:
    system = make()
    good = {"good": b"good"}
    tasks = tuple(system.put(bucket, good))
    system.send("NotificationQueueUrl", "poison")
    system.send("NotificationQueueUrl", encode(HashMessage("run", bucket, ("sha256",), tasks)))
    system.poller.drain()
    assert system.poller.batches == 1
    assert system.letters() == ["poison"]
    assert system.digests(bucket) == expected(good)


def test_doubled_and_outdated_messages_leave_one_digest(make: Make, bucket: str) -> None:
    system = make()
    kept = {"kept": b"kept"}
    (gone,) = system.put(bucket, {"gone": b"gone"})
    system.deployment.client("s3").delete_object(Bucket=bucket, Key="gone")
    (task,) = system.put(bucket, kept)
    for tasks in ((task,), (gone,), (task,), (replace(task, etag="0" * 32),)):
        system.send("HashQueueUrl", encode(HashMessage("run", bucket, ("sha256",), tasks)))
    system.poller.drain()
    assert system.poller.batches == 4
    assert system.local.started > 1
    assert system.digests(bucket) == expected(kept)
    assert len(system.items(bucket)) == 1
    assert system.letters() == []


def test_out_of_time_in_mid_audit_the_run_goes_on_and_adds_up(make: Make, bucket: str) -> None:
    system = make(audit={"timeout": 6.0, "variables": {"AUDITOR_MAX_RATE": "30"}})
    objects = {f"key-{number:03}": b"" for number in range(150)}
    system.put(bucket, objects)
    system.fire({"bucket": bucket})
    assert system.local.failed == []
    hops = [one.event.get("hop", 0) for one in system.local.invoked]
    assert hops == list(range(len(hops)))
    assert len(hops) > 1
    *parts, last = system.summaries()
    assert not any(part["complete"] for part in parts)
    assert {part["run"] for part in parts} == {last["run"]}
    assert last["complete"]
    assert last["coverage"]["listed"] == last["coverage"]["audited"] == len(objects)
    assert last["hashing"]["queued"] == len(objects)
    report = system.report(bucket)
    assert [name for name in report if name.endswith("summary.json")] == [f"run={last['run']}/summary.json"]
    assert json.loads(report[f"run={last['run']}/summary.json"]) == last
    assert sorted(keys(report, "objects")) == sorted(objects)
    system.poller.drain()
    assert system.digests(bucket) == expected(objects)


@pytest.fixture
def impatient(deployment: Deployment) -> Iterator[None]:
    """The hash queue with a visibility timeout of a few seconds, and no more than two receipts."""
    sqs, url = deployment.client("sqs"), deployment.outputs()["HashQueueUrl"]
    names = ["VisibilityTimeout", "RedrivePolicy"]
    before = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"]
    policy = json.dumps(json.loads(before["RedrivePolicy"]) | {"maxReceiveCount": 2})
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"VisibilityTimeout": "6", "RedrivePolicy": policy})
    yield
    sqs.set_queue_attributes(QueueUrl=url, Attributes=before)


@pytest.fixture
def slow(stub: StubServer, make: Make) -> System:
    """The worker on a stub that never answers a GET of keys that begin with "slow", with few seconds for it."""
    stub.faults = [on_keys(lambda key: key.startswith("slow"), BLACK_HOLE, {"GetObject"})]
    return make(hashing={"timeout": 4.0, "variables": {"AWS_ENDPOINT_URL_S3": stub.url}})


def message_of(stub: StubServer, key: str) -> str:
    item = stub.put(BUCKET, key, key.encode())
    task = HashTask(item.key, None, item.etag, item.size)
    return encode(HashMessage("run", BUCKET, ("sha256",), (task,)))


@pytest.mark.usefixtures("impatient")
def test_a_worker_that_is_killed_at_its_timeout_loses_nothing(slow: System, stub: StubServer) -> None:
    slow.send("HashQueueUrl", message_of(stub, "slow"))
    assert slow.poller.poll() == 1
    assert b"Task timed out after 4.00 seconds" in slow.local.invoked[0].answer.payload
    stub.faults = []
    slow.poller.drain()
    assert told(slow.local.invoked[1].answer) == {"batchItemFailures": []}
    assert slow.digests(BUCKET)["slow"] == hashlib.sha256(b"slow").hexdigest()
    assert slow.letters() == []


@pytest.mark.usefixtures("impatient")
def test_a_message_that_kills_every_worker_goes_to_the_dead_letters_alone(slow: System, stub: StubServer) -> None:
    deadly = message_of(stub, "slow/deadly")
    slow.send("HashQueueUrl", deadly)
    slow.send("HashQueueUrl", message_of(stub, "quick"))
    slow.poller.drain()
    errors = [one for one in slow.local.invoked if one.answer.error]
    assert len(errors) == 2
    assert slow.letters() == [deadly]
    assert slow.digests(BUCKET)["quick"] == hashlib.sha256(b"quick").hexdigest()
