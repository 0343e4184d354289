"""The hashing function, as Lambda calls it: real SQS, DynamoDB and S3 answers from moto's server."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any
from uuid import uuid4

import boto3
import pytest
from msgspec.structs import replace

from auditor.errors import LedgerError, UsageError
from auditor.hashing.queue.message import HashMessage, HashTask, encode
from auditor.lambdas.deadline import DEADLINE
from auditor.lambdas.hashing import HashingFunction
from auditor.ledger.dynamodb.ledger import create_table
from auditor.ledger.dynamodb.table import own_name
from tests.ledger.conftest import new_table
from tests.support.deadline import Deadline
from tests.support.fakes.hashing import etag_of
from tests.support.log_lines import logged
from tests.support.object_events import notification
from tests.support.servers.forwarding import Silencing
from tests.support.servers.stub import StubServer
from tests.support.servers.world import World

MIB = 1024 * 1024


@cache
def client_of(service: str, url: str) -> Any:
    return boto3.client(service, endpoint_url=url)


@dataclass(frozen=True, slots=True)
class Cloud:
    """The queue, the table and the bucket, and the function's environment for them."""

    url: str
    environ: dict[str, str]
    bucket: str

    def client(self, service: str) -> Any:
        return client_of(service, self.url)

    def task(self, key: str, data: bytes) -> HashTask:
        put = self.client("s3").put_object(Bucket=self.bucket, Key=key, Body=data)
        return HashTask(key, None, put["ETag"].strip('"'), len(data))

    def message(self, *tasks: HashTask) -> str:
        return encode(HashMessage("run", self.bucket, ("sha256",), tasks))

    def items(self) -> list[Any]:
        """The ledger's digests; the names of all other items begin with a space or a minus."""
        table = self.environ["AUDITOR_LEDGER"].removeprefix("dynamodb:")
        found: list[dict[str, Any]] = self.client("dynamodb").scan(TableName=table)["Items"]
        return [own_name(one) for one in found if one["sk"]["S"][0] not in " -"]

    def letters(self) -> list[dict[str, Any]]:
        url = self.environ["AUDITOR_DEAD_LETTER_QUEUE"]
        answer = self.client("sqs").receive_message(QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"])
        return list(answer.get("Messages", []))

    def received(self, *bodies: str, hop: int = 0) -> dict[str, Any]:
        """Send the bodies, receive the messages of this hop, and wrap them as Lambda's event source mapping does."""
        sqs, url = self.client("sqs"), self.environ["AUDITOR_QUEUE"]
        for body in bodies:
            sqs.send_message(QueueUrl=url, MessageBody=body)
        found = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, AttributeNames=["All"])["Messages"]
        return {"Records": [as_record(one) for one in found if not hop or f'"hops":{hop}' in one["Body"]]}


def created(bucket: str, etag: str) -> str:
    """S3's event on the new object `key` of 4 bytes."""
    return notification("key", bucket=bucket, event="ObjectCreated:Put", eTag=etag, size=4, sequencer="0A")


def as_record(message: dict[str, Any]) -> dict[str, Any]:
    return {
        "messageId": message["MessageId"],
        "receiptHandle": message["ReceiptHandle"],
        "body": message["Body"],
        "attributes": message.get("Attributes", {}),
        "messageAttributes": {},
        "eventSource": "aws:sqs",
    }


@pytest.fixture
async def cloud(moto_url: str, monkeypatch: pytest.MonkeyPatch) -> Cloud:
    monkeypatch.setenv("AWS_ENDPOINT_URL", moto_url)
    sqs, table = client_of("sqs", moto_url), await new_table(moto_url)
    client_of("s3", moto_url).create_bucket(Bucket=table)
    environ = {
        "AUDITOR_QUEUE": sqs.create_queue(QueueName=table)["QueueUrl"],
        "AUDITOR_DEAD_LETTER_QUEUE": sqs.create_queue(QueueName=f"{table}-dead")["QueueUrl"],
        "AUDITOR_LEDGER": f"dynamodb:{table}",
    }
    return Cloud(moto_url, environ, table)


@asynccontextmanager
async def opened(environ: Mapping[str, str], *stopping: Deadline) -> AsyncIterator[HashingFunction]:
    service = HashingFunction(environ, *stopping)
    try:
        yield service
    finally:
        await service.close()


@pytest.fixture
async def service(cloud: Cloud) -> AsyncIterator[HashingFunction]:
    async with opened(cloud.environ) as made:
        yield made


async def test_one_bad_message_never_fails_its_neighbours(service: HashingFunction, cloud: Cloud) -> None:
    """One is of an odd key, and one is of an object in several parts."""
    bodies = {"a key/+%41": b"small", "large": bytes(3 * MIB), "key": b"data"}
    good = [cloud.message(cloud.task(key, data)) for key, data in bodies.items()]
    event = cloud.received(good[0], "malformed", good[1], good[2])
    assert await service.handle(event) == {"batchItemFailures": []}
    assert {item["pk"]["S"]: item["sha256"]["S"] for item in cloud.items()} == {
        f"{cloud.bucket}/{key}": hashlib.sha256(data).hexdigest() for key, data in bodies.items()
    }
    (letter,) = cloud.letters()
    assert letter["Body"] == "malformed"
    assert letter["MessageAttributes"]["reason"]["StringValue"] == "the body is not JSON"


async def test_message_that_cannot_be_put_away_is_reported_and_comes_again_soon(cloud: Cloud) -> None:
    """The second event is of another queue: its message comes again on that queue."""
    environ = {name: value for name, value in cloud.environ.items() if name != "AUDITOR_DEAD_LETTER_QUEUE"}
    sqs = cloud.client("sqs")
    other = sqs.create_queue(QueueName=f"{cloud.bucket}-events", Attributes={"VisibilityTimeout": "5400"})["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=other, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    sqs.send_message(QueueUrl=other, MessageBody="malformed")
    (message,) = sqs.receive_message(QueueUrl=other, AttributeNames=["All"])["Messages"]
    async with opened(environ) as service:
        event = cloud.received(cloud.message(cloud.task("key", b"data")), "malformed")
        bad = next(record["messageId"] for record in event["Records"] if record["body"] == "malformed")
        assert await service.handle(event) == {"batchItemFailures": [{"itemIdentifier": bad}]}
        assert len(cloud.items()) == 1
        with logged() as lines:
            failed = await service.handle({"Records": [{**as_record(message), "eventSourceARN": arn}]})
    assert failed == {"batchItemFailures": [{"itemIdentifier": message["MessageId"]}]}
    assert not [line for line in lines if "keeps its visibility timeout" in line["message"]]


async def test_event_that_is_no_sqs_batch(service: HashingFunction) -> None:
    wrong: tuple[Any, ...] = ({"bucket": "x"}, [], "Records", {"Records": {}}, {"Records": [{}]}, {"Records": ["a"]})
    for event in wrong:
        with pytest.raises(UsageError, match="takes SQS batches only"):
            await service.handle(event)


async def test_a_record_without_what_a_message_has_fails_alone(service: HashingFunction, cloud: Cloud) -> None:
    cases: tuple[dict[str, Any], ...] = ({"body": None}, {"body": 7}, {"body": {"v": 1}}, {"receiptHandle": None})
    for number, broken in enumerate(cases):
        good, bad = (cloud.message(cloud.task(f"{name} {number}", b"data")) for name in ("good", "bad"))
        event = cloud.received(good, bad)
        wrong = next(record for record in event["Records"] if '"bad' in record["body"])
        for name, value in broken.items():
            wrong[name] = value
            if value is None:
                del wrong[name]
        failed = {"batchItemFailures": [{"itemIdentifier": wrong["messageId"]}]}
        assert await service.handle(event) == failed, broken
    found = {item["pk"]["S"] for item in cloud.items()}
    assert found == {f"{cloud.bucket}/good {number}" for number in range(len(cases))}
    assert cloud.letters() == []


async def test_wrong_setting_is_named(cloud: Cloud) -> None:
    for name, value, sentence in (
        ("AUDITOR_QUEUE", None, "AUDITOR_QUEUE is not set"),
        ("AUDITOR_LEDGER", None, "AUDITOR_LEDGER is not set"),
        ("AUDITOR_ENGINE", "curl", r"AUDITOR_ENGINE is 'curl', .* direct or aioboto3 or boto3"),
        ("AUDITOR_ALGORITHMS", ",", "AUDITOR_ALGORITHMS"),
        ("AUDITOR_ALGORITHMS", "sha256,crc32", "AUDITOR_ALGORITHMS"),
        ("AUDITOR_STREMS", "4", "AUDITOR_STREMS"),
        ("AUDITOR_STREAMS", "9", "AUDITOR_STREAMS"),
    ):
        environ = {key: one for key, one in (cloud.environ | {name: value}).items() if one is not None}
        with pytest.raises(UsageError, match=sentence):
            await HashingFunction(environ).handle({"Records": []})


async def test_ledger_that_is_missing_at_first_is_tried_again_with_the_next_event(cloud: Cloud) -> None:
    name = uuid4().hex
    async with opened(cloud.environ | {"AUDITOR_LEDGER": f"dynamodb:{name}"}) as service:
        with pytest.raises(LedgerError, match="does not exist"):
            await service.handle({"Records": []})
        await create_table(name)
        assert await service.handle({"Records": []}) == {"batchItemFailures": []}


async def test_bucket_of_another_owner_than_expected_is_not_read(cloud: Cloud) -> None:
    foreign, ours = (HashTask("key", None, etag_of(data), 4) for data in (b"data", b"ours"))
    bodies = [
        encode(HashMessage("run", "foreign", ("sha256",), (replace(foreign, attempts=4),))),
        created("foreign", foreign.etag),
        encode(HashMessage("run", "ours", ("sha256",), (foreign, ours))),
    ]
    with StubServer(World()) as stub:
        stub.world.add("foreign", account="9" * 12).put("key", b"data")
        stub.world.add("ours", account="1" * 12).put("key", b"ours")
        environ = cloud.environ | {"AUDITOR_ENDPOINT_URL": stub.url, "AUDITOR_EXPECTED_OWNER": "1" * 12}
        async with opened(environ) as service:
            assert await service.handle(cloud.received(*bodies)) == {"batchItemFailures": []}
        assert {call.headers.get("x-amz-expected-bucket-owner") for call in stub.calls} == {"1" * 12}
    # Only the object of the expected owner has a digest: under its own ETag, and of its own bytes.
    (item,) = [one for one in cloud.items() if "sha256" in one]
    assert {one["pk"]["S"] for one in cloud.items()} == {"ours/key", "foreign/key"}, (
        "the event is told of its own bucket"
    )
    assert item["pk"]["S"] == "ours/key"
    assert item["sk"]["S"].endswith(ours.etag)
    assert item["sha256"]["S"] == hashlib.sha256(b"ours").hexdigest()
    (letter,) = cloud.letters()
    assert letter["MessageAttributes"]["reason"]["StringValue"] == "AccessDenied"
    assert json.loads(letter["Body"])["bucket"] == "foreign"


async def test_message_whose_bucket_is_no_name_is_put_away_unread(cloud: Cloud) -> None:
    one = encode(HashMessage("run", "placeholder", ("sha256",), (HashTask("key", None, etag_of(b"data"), 4),)))
    with StubServer(World()) as stub:
        async with opened(cloud.environ | {"AUDITOR_ENDPOINT_URL": stub.url}) as service:
            for name in ("ours/../foreign", "arn:aws:s3:::foreign", "foreign?a=", "-"):
                bodies = [one.replace("placeholder", name), created(name, etag_of(b"data"))]
                assert await service.handle(cloud.received(*bodies)) == {"batchItemFailures": []}
                letters = cloud.letters()
                assert sorted(letter["Body"] for letter in letters) == sorted(bodies), name
                reasons = {letter["MessageAttributes"]["reason"]["StringValue"] for letter in letters}
                words = "is not a bucket's name"
                assert reasons == {f"bucket {words}", f"Records[0].s3.bucket.name {words}"}, name
        assert stub.calls == []
    assert cloud.items() == []


async def test_what_is_logged_names_run_bucket_and_request(service: HashingFunction, cloud: Cloud) -> None:
    event = cloud.received(cloud.message(cloud.task("secret-name", b"data")), "poison")
    with logged() as lines:
        await service.handle(event, "request-1")
        with pytest.raises(UsageError):
            await service.handle({}, "request-2")
    worked = next(line for line in lines if "1 hashed" in line["message"])
    assert {"run": "run", "bucket": cloud.bucket, "requestId": "request-1"}.items() <= worked.items()
    assert "2 messages, of which 0 will be redelivered" in [line["message"] for line in lines]
    malformed = next(line for line in lines if "is malformed" in line["message"])
    assert "run" not in malformed
    assert (lines[-1]["level"], lines[-1]["requestId"]) == ("ERROR", "request-2")
    assert "secret-name" not in json.dumps(lines)


async def test_large_object_is_left_at_the_margin_and_goes_on_with_the_next_event(cloud: Cloud) -> None:
    data = bytes(range(256)) * 4096 * 65
    with StubServer(World()) as stub:
        item = stub.world.add("huge").put("large", data)
        deadline = Deadline()
        async with opened(cloud.environ | {"AUDITOR_ENDPOINT_URL": stub.url}, deadline) as service:
            body = encode(HashMessage("run", "huge", ("sha256",), (HashTask("large", None, item.etag, len(data)),)))
            stub.faults = [deadline.at("large")]
            assert await service.handle(cloud.received(body)) == {"batchItemFailures": []}
            assert [one for one in cloud.items() if "sha256" in one] == []
            stub.faults = []
            assert await service.handle(cloud.received(hop=1)) == {"batchItemFailures": []}
    (digest,) = [one["sha256"]["S"] for one in cloud.items() if "sha256" in one]
    assert digest == hashlib.sha256(data).hexdigest()


async def test_messages_come_again_with_a_reason_from_a_ledger_that_falls_silent(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    deadline = Deadline(20.0, cut=1.5)
    with Silencing(cloud.url) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", server.url)
        service = HashingFunction(cloud.environ, deadline)
        await service.handle({"Records": []})

        def silent(method: str, target: str, headers: Mapping[str, str]) -> bool:
            deadline.come()
            return True

        server.silent = silent
        event = cloud.received(*(cloud.message(cloud.task(key, b"data")) for key in ("one", "two")))
        names = [record["messageId"] for record in event["Records"]]
        event["Records"][1]["attributes"]["ApproximateReceiveCount"] = "4"  # it is sent anew: see Processor
        with logged() as lines:
            assert await service.handle(event) == {"batchItemFailures": [{"itemIdentifier": names[0]}]}
        told = sorted(line["message"] for line in lines if "will be redelivered: " in line["message"])
        reason = f"the ledger, S3 or the queue did not answer before the end ({DEADLINE})"
        assert told == sorted(f"message {name} will be redelivered: {reason}" for name in names)
        await service.close()


def test_handler_lives_through_several_events_of_one_process(cloud: Cloud) -> None:
    events = [cloud.received(cloud.message(cloud.task(f"key-{number}", b"data"))) for number in range(2)]
    program = (
        "import json, sys\n"
        "from handlers.hashing import handler\n"
        "for event in json.load(sys.stdin): print(json.dumps(handler(event, None)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        input=json.dumps(events),
        env=os.environ | cloud.environ,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, '{"batchItemFailures": []}\n' * 2), done.stderr
    assert [json.loads(line)["level"] for line in done.stderr.splitlines()] == ["INFO"] * 4
    assert len(cloud.items()) == 2
