"""The SQS queue, on moto's server: batches, visibility, dead letters, and failures in plain sentences."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any, cast
from uuid import uuid4

import boto3
import pytest

from auditor.aws.client import ThreadedClient
from auditor.aws.sqs import BATCH_BYTES, Outgoing, SqsQueue, batches, open_queue
from auditor.errors import CallFailed, QueueError, UsageError


@pytest.fixture
def sqs(moto_url: str) -> Any:
    return boto3.client("sqs", endpoint_url=moto_url)


@pytest.fixture
async def queue(sqs: Any) -> AsyncIterator[SqsQueue]:
    url = sqs.create_queue(QueueName=f"queue-{uuid4().hex}")["QueueUrl"]
    async with open_queue(url) as opened:
        yield opened


class Failing:
    """A client whose every call fails in one way."""

    region = "eu-north-1"

    def __init__(self, code: str) -> None:
        self._code = code

    async def call(self, operation: str, **_: Any) -> dict[str, Any]:
        raise CallFailed(operation, self._code, 400)


async def test_more_than_a_batch_arrives_whole_and_is_deleted(queue: SqsQueue) -> None:
    sent = [f"body-{number}" for number in range(23)]
    assert await queue.send([Outgoing(body) for body in sent]) == []
    bodies: list[str] = []
    while batch := await queue.receive(10, wait=0, visibility=60):
        bodies += [received.body for received in batch]
        await queue.delete([received.receipt for received in batch])
    assert sorted(bodies) == sorted(sent)


async def test_hidden_message_comes_again_and_its_receives_are_counted(queue: SqsQueue) -> None:
    await queue.send([Outgoing("body")])
    (first,) = await queue.receive(10, wait=0, visibility=60)
    assert first.receive_count == 1
    assert await queue.receive(10, wait=0, visibility=60) == []
    await queue.hide(first.receipt, 0)
    (second,) = await queue.receive(10, wait=0, visibility=60)
    assert (second.id, second.body, second.receive_count) == (first.id, "body", 2)


async def test_delay_and_attributes_are_sent(queue: SqsQueue, sqs: Any) -> None:
    await queue.send([Outgoing("later", delay=900), Outgoing("now", attributes={"reason": "why"})])
    (message,) = sqs.receive_message(QueueUrl=queue.url, MaxNumberOfMessages=10, MessageAttributeNames=["All"])[
        "Messages"
    ]
    assert message["Body"] == "now"
    assert message["MessageAttributes"]["reason"]["StringValue"] == "why"


async def test_dead_letter_queue_of_the_redrive_policy(
    queue: SqsQueue, sqs: Any, caplog: pytest.LogCaptureFixture
) -> None:
    assert await queue.dead_letter_queue() is None
    assert "has no dead-letter queue: messages that cannot be hashed stay on it" in caplog.text
    dead_url = sqs.create_queue(QueueName=f"dead-{uuid4().hex}")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=dead_url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    policy = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": 3})
    sqs.set_queue_attributes(QueueUrl=queue.url, Attributes={"RedrivePolicy": policy})
    found = await queue.dead_letter_queue()
    assert isinstance(found, SqsQueue)
    assert found.url.rpartition("/")[2] == dead_url.rpartition("/")[2]
    assert (queue.max_receives, queue.beside("arn:aws:sqs:us-east-1:1:other").max_receives) == (3, 3)
    await found.send([Outgoing("letter")])
    assert sqs.receive_message(QueueUrl=dead_url)["Messages"][0]["Body"] == "letter"


@pytest.mark.parametrize("code", ["AccessDenied", "AWS.SimpleQueueService.NonExistentQueue"])
async def test_dead_letter_queue_that_may_not_be_known_is_none(code: str) -> None:
    assert await SqsQueue("https://q/1/x", cast(ThreadedClient, Failing(code))).dead_letter_queue() is None


async def test_queue_that_does_not_exist(moto_url: str) -> None:
    async with open_queue(f"{moto_url}/123456789012/no-such") as queue:
        with pytest.raises(QueueError, match=r"the queue .*/no-such does not exist .*check its URL"):
            await queue.send([Outgoing("body")])


SENTENCES = {
    "AccessDenied": r"refuses SendMessageBatch \(AccessDenied\): allow sqs:SendMessage$",
    "ExpiredToken": "refuses the credentials",
    "InvalidClientTokenId": "refuses the credentials",
    "KmsThrottled": "fails at SendMessageBatch: KmsThrottled",
    "ConnectionError": r"cannot be reached \(ConnectionError\)",
}


async def test_failure_is_one_sentence() -> None:
    for code, sentence in SENTENCES.items():
        with pytest.raises(QueueError, match=sentence):
            await SqsQueue("https://q/1/x", cast(ThreadedClient, Failing(code))).send([Outgoing("body")])


async def test_url_of_no_standard_queue_is_refused() -> None:
    host = "https://sqs.eu-north-1.amazonaws.com"
    for url in ("", "name", "arn:aws:sqs:eu-north-1:1:name", host, "ftp://x/1/name", f"{host}/1/name.fifo"):
        with pytest.raises(UsageError, match="FIFO" if "fifo" in url else "--queue .* is not a queue's URL"):
            async with open_queue(url):
                pass


QUEUES = {
    "https://sqs.eu-north-1.amazonaws.com/1/q": ("eu-north-1", "sqs.eu-north-1.amazonaws.com"),
    "https://sqs-fips.us-gov-west-1.amazonaws.com/1/q": ("us-gov-west-1", "sqs.us-gov-west-1.amazonaws.com"),
    "https://sqs-fips.us-east-2.amazonaws.com/1/q": ("us-east-2", "sqs-fips.us-east-2.amazonaws.com"),
    "https://sqs.cn-north-1.amazonaws.com.cn/1/q": ("cn-north-1", "sqs.cn-north-1.amazonaws.com.cn"),
    "https://eu-west-1.queue.amazonaws.com/1/q": ("eu-west-1", "sqs.eu-west-1.amazonaws.com"),
    "https://vpce-1-2.sqs.eu-west-1.vpce.amazonaws.com/1/q": ("eu-west-1", "vpce-1-2.sqs.eu-west-1.vpce.amazonaws.com"),
    "http://127.0.0.1:9324/000000000000/q": ("us-east-1", "127.0.0.1:9324"),
}


async def test_region_and_endpoint_come_from_the_url() -> None:
    for url, expected in QUEUES.items():
        async with open_queue(url, region="ap-south-1" if "amazonaws" in url else None) as queue:
            assert (queue.region, queue.endpoint.partition("//")[2]) == expected, url
            assert queue.url == url


def test_batches_keep_ten_entries_and_the_bytes_of_a_call() -> None:
    small = [Outgoing("x")] * 23
    assert [len(part) for part in batches(small)] == [10, 10, 3]
    big = [Outgoing("x" * 100_000)] * 5
    assert [len(part) for part in batches(big)] == [2, 2, 1]
    assert [len(part) for part in batches([Outgoing("x" * (BATCH_BYTES + 1)), *small[:2]])] == [1, 2]
