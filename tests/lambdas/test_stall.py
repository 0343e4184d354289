"""A server that stops answering in mid-run: the run is handed on or its end is told, before the deadline."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from auditor.errors import RunError
from auditor.hashing.limits import LARGE
from auditor.hashing.queue.message import decode
from auditor.lambdas.audit import AuditFunction
from auditor.ledger.dynamodb.ledger import create_table
from auditor.runs.reading import RunReader
from auditor.runs.stores import open_store
from tests.support.deadline import Deadline
from tests.support.function_account import Account
from tests.support.servers.clients import client
from tests.support.servers.forwarding import Silencing
from tests.support.servers.stub import StubServer
from tests.support.servers.stub_faults import BLACK_HOLE, Fault, Plan
from tests.support.state_machine import run_machine

OBJECTS = 60
MARGIN, CUT = 10.0, 0.8
"""Seconds from the stop to the deadline, and until requests in flight are cut off."""


def fill(stub: StubServer, *buckets: str) -> None:
    for bucket in buckets:
        for number in range(OBJECTS):
            stub.put(bucket, f"{number:03}", b"x")


def function(stub: StubServer, out: Path | str, buckets: str = "audited", **more: str) -> AuditFunction:
    environ = {"AUDITOR_BUCKETS": buckets, "AUDITOR_ENDPOINT_URL": stub.url, "AUDITOR_OUT": str(out)}
    return AuditFunction({**environ, "AUDITOR_CONCURRENCY": "2", "AUDITOR_FAIL_ON": "never", **more})


def near(margin: float = MARGIN) -> Account:
    """An account whose deadlines come when a server falls silent."""
    return Account(1.0, deadline=Deadline(margin, CUT))


def silence(account: Account, concerns: Callable[[str, str], bool]) -> Plan:
    """The calls that it concerns get no answer, and with the first one the deadline is near."""

    def plan(operation: str, key: str, nth: int) -> Fault | None:
        if not concerns(operation, key):
            return None
        account.deadline.come()
        return BLACK_HOLE

    return plan


def silence_from(account: Account, first: str) -> Plan:
    return silence(account, lambda operation, key: key >= first)


def falls_silent(account: Account) -> Callable[[str, str, Mapping[str, str]], bool]:
    """No request gets an answer, and with the first one the deadline is near."""

    def silent(method: str, target: str, headers: Mapping[str, str]) -> bool:
        account.deadline.come()
        return True

    return silent


async def ended(account: Account, service: AuditFunction) -> Mapping[str, Any]:
    """The summary of the run of the execution that an invocation has started."""
    (event,) = account.events
    account.events.clear()
    done = await run_machine(lambda given: service.handle(given, account.around()), event)
    (summary,) = done["runs"]
    return dict(summary)


def audited(out: Path, run: str, bucket: str = "audited") -> list[str]:
    with open_store(str(out)) as store:
        return [line.key for line in RunReader(store, bucket, run).objects()]


async def test_bucket_that_falls_silent_in_mid_run_is_handed_on_from_the_last_object_read(
    stub: StubServer, tmp_path: Path
) -> None:
    fill(stub, "audited")
    account, service = near(), function(stub, tmp_path)
    stub.faults = [silence_from(account, "030")]
    (first,) = (await service.handle({}, account.around()))["runs"]
    assert (first["complete"], first["coverage"]["listed"]) == (False, 30)
    assert account.metric("RunsHandedOn") == 1
    stub.faults = []
    last = await ended(account, service)
    assert (last["run"], last["complete"], last["coverage"]["listed"]) == (first["run"], True, OBJECTS)
    assert audited(tmp_path, last["run"]) == [f"{number:03}" for number in range(OBJECTS)]
    assert account.messages == []


async def test_versions_of_a_key_that_are_not_all_read_are_read_again(stub: StubServer, tmp_path: Path) -> None:
    bucket = stub.world.add("audited")
    bucket.versioning = "Enabled"
    for number in range(9):
        for _ in range(3):
            stub.put("audited", f"{number:03}", b"x")
    heads = 0

    def second_of_five(operation: str, key: str) -> bool:
        nonlocal heads
        heads += operation == "HeadObject" and key == "004"
        return heads == 2

    account, service = near(), function(stub, tmp_path, AUDITOR_VERSIONS="true", AUDITOR_CONCURRENCY="1")
    stub.faults = [silence(account, second_of_five)]
    (first,) = (await service.handle({}, account.around()))["runs"]
    assert first["coverage"]["listed"] == 12
    stub.faults = []
    last = await ended(account, service)
    assert (last["complete"], last["coverage"]["listed"]) == (True, 27)
    assert audited(tmp_path, last["run"]) == [f"{number:03}" for number in range(9) for _ in range(3)]


async def test_next_night_finishes_the_run_that_nobody_goes_on_with(stub: StubServer, tmp_path: Path) -> None:
    """Step Functions refuses the hand-over. The failure names bucket, run and event; the next start resumes the run."""
    fill(stub, "audited")

    class Refused(Account):
        async def start(self, name: str, event: Mapping[str, Any]) -> str:
            raise RunError("states:StartExecution is denied")

    account, service = Refused(deadline=Deadline(MARGIN, CUT)), function(stub, tmp_path)
    stub.faults = [silence_from(account, "030")]
    with pytest.raises(RunError) as failure:
        await service.handle({}, account.around())
    (folder,) = (tmp_path / "bucket=audited").glob("run=*")
    run = folder.name.removeprefix("run=")
    event = json.dumps({"bucket": "audited", "prefix": "", "versions": False, "run": run})
    (message,) = account.messages
    for words in ("s3://audited", f"run {run}", "states:StartExecution is denied", event):
        assert words in str(failure.value)
        assert words in message
    assert "029" not in message.replace(run, "")
    assert (account.metric("RunsHandedOn"), account.metric("RunsFailed")) == (0, 1)
    stub.faults = []
    stub.forget()
    tomorrow = Account(900.0)
    (summary,) = (await service.handle({}, tomorrow.around()))["runs"]
    assert (summary["run"], summary["complete"], summary["coverage"]["listed"]) == (run, True, OBJECTS)
    assert stub.count("GetObjectAcl") == OBJECTS - 30
    (after,) = (await service.handle({}, tomorrow.around()))["runs"]
    assert after["run"] != run


async def test_alert_topic_without_an_answer_hides_no_failure(stub: StubServer, tmp_path: Path) -> None:
    class Silent(Account):
        async def publish(self, subject: str, message: str) -> None:
            self.deadline.come()
            await asyncio.Event().wait()

    account = Silent(deadline=Deadline(1.0))
    with pytest.raises(RunError, match="no bucket named 'no-such-bucket'"):
        await function(stub, tmp_path, "no-such-bucket").handle({}, account.around())
    assert account.metric("RunsFailed") == 1


async def test_bucket_that_is_silent_from_the_begin_is_told_and_keeps_up_no_other(
    stub: StubServer, tmp_path: Path
) -> None:
    fill(stub, "audited")
    stub.world.add("good-bucket")
    account, service = near(), function(stub, tmp_path, "audited,good-bucket")
    first = silence(account, lambda operation, key: True)
    stub.faults = [lambda *call: first(*call) if stub.calls[-1].bucket == "audited" else None]
    await service.handle({}, account.around())
    (event,) = account.events
    stub.put("good-bucket", "key", b"x")
    done = await run_machine(lambda given: service.handle(given, account.around()), event)
    assert (done["next"], "s3://audited" in done["left"][0], "did not answer" in done["left"][0]) == (
        "incomplete",
        True,
        True,
    )
    assert [one["target"]["bucket"] for one in done["runs"]] == ["good-bucket"]
    assert len(account.messages) == 1
    assert account.metric("RunsFailed") == 1


async def test_reports_bucket_that_falls_silent_is_told_with_the_run(
    moto_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("auditor.lambdas.lease.AFTER_DEADLINE", -1.0)  # the lease ends with the invocation
    name = uuid4().hex[:12]
    with closing(client("s3", moto_url)) as s3, Silencing(moto_url) as server:
        for bucket in (f"audited-{name}", f"reports-{name}"):
            s3.create_bucket(Bucket=bucket)
        for number in range(3):
            s3.put_object(Bucket=f"audited-{name}", Key=f"{number:03}", Body=b"x")
        environ = {"AUDITOR_ENDPOINT_URL": server.url, "AUDITOR_OUT": f"s3://reports-{name}/audits"}
        service = AuditFunction({**environ, "AUDITOR_BUCKETS": f"audited-{name}", "AUDITOR_FAIL_ON": "never"})
        account, listed = near(4.0), threading.Event()

        def silent(method: str, target: str, headers: Mapping[str, str]) -> bool:
            if "list-type=2" in target and target.startswith("/audited"):
                listed.set()
            if listed.is_set() and target.startswith("/reports"):
                account.deadline.come()
                return True
            return False

        server.silent = silent
        with pytest.raises(RunError, match=r"did not answer.* the event \{"):
            await service.handle({}, account.around())
        assert len(account.messages) == 1
        server.silent = lambda method, target, headers: False
        later = Account(900.0)
        event = json.loads(account.messages[0].rpartition("the event ")[2])
        assert event["bucket"] == f"audited-{name}"
        (summary,) = (await service.handle(event, later.around()))["runs"]
        assert (summary["complete"], summary["coverage"]["listed"]) == (True, 3)


async def test_run_whose_ledger_cannot_be_opened_before_the_deadline_is_handed_on(
    stub: StubServer, moto_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(stub, "audited")
    table = uuid4().hex
    await create_table(table, region="us-east-1", endpoint_url=moto_url)
    account, service = near(), function(stub, tmp_path, AUDITOR_LEDGER=f"dynamodb:{table}")
    with Silencing(moto_url) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", server.url)
        server.silent = falls_silent(account)
        answer = await service.handle({}, account.around(request="request-1"))
        assert (answer["runs"], len(answer["executions"])) == ([], 1)
        server.silent = lambda method, target, headers: False
        last = await ended(account, service)
    assert (last["complete"], last["coverage"]["listed"]) == (True, OBJECTS)
    assert account.messages == []


async def test_next_invocation_sends_what_a_silent_queue_did_not_take(
    stub: StubServer, moto_url: str, tmp_path: Path
) -> None:
    """Objects go out after the listing, and large ones before its end, each in its own message."""
    fill(stub, "audited")
    for number in range(20):
        stub.put("audited", f"{number:03}", None, size=LARGE)
    account, keys = near(), list[str]()
    with Silencing(moto_url) as server, closing(client("sqs", moto_url)) as sqs:
        server.silent, queue = falls_silent(account), sqs.create_queue(QueueName=uuid4().hex)["QueueUrl"]
        url = f"{server.url}/{queue.split('/', 3)[3]}"
        service = function(stub, tmp_path, AUDITOR_QUEUE=url, AUDITOR_LEDGER=f"sqlite:{tmp_path}/digests.db")
        (first,) = (await service.handle({}, account.around()))["runs"]
        assert (first["complete"], first["hashing"]["queued"]) == (False, 0)
        assert (first["hashing"]["pending"], len(account.events)) == (first["coverage"]["listed"], 1)
        assert (account.metric("RunsHandedOn"), account.metric("RunsComplete")) == (1, 0)
        server.silent = lambda method, target, headers: False
        last = await ended(account, service)
        while messages := sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10).get("Messages"):
            keys += (task.key for message in messages for task in decode(message["Body"]).tasks)
    assert (last["run"], last["complete"], last["coverage"]["listed"]) == (first["run"], True, OBJECTS)
    assert (last["hashing"]["pending"], last["hashing"]["queued"]) == (0, OBJECTS)
    assert sorted(keys) == audited(tmp_path, last["run"]) == [f"{number:03}" for number in range(OBJECTS)]
    assert account.messages == []
