"""Malformed events and audits that crash: the caller gets an error, and an asynchronous event is kept."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.servers.stub import StubServer
from tests.support.servers.stub_faults import BLACK_HOLE
from tests.system.e2e.deployment import SERVICE
from tests.system.e2e.system import AUDIT, Make, System, expected, told

HASHING = f"{SERVICE}-hashing"


def kept(system: System) -> list[dict[str, Any]]:
    """What the queue for failures holds, and then no more."""
    return [json.loads(body) for body in system.queues.taken(system.deployment.failure_queue())]


@pytest.mark.parametrize(
    ("event", "named"),
    [
        ({"bukket": "photos"}, "'bukket' is unknown"),
        ({"bucket": 7}, "bucket is not a text"),
        ({"prefix": "2024/"}, "prefix needs a bucket beside it"),
        ([1], "the event is not a JSON object"),
    ],
    ids=["unknown field", "wrong type", "no bucket", "no object"],
)
def test_a_malformed_event_of_the_audit_is_told_by_name(make: Make, event: Any, named: str) -> None:
    answer = make().local.invoke(AUDIT, event)
    assert answer.error == "Unhandled"
    failure = json.loads(answer.payload)
    assert failure["errorType"] == "UsageError"
    assert named in failure["errorMessage"]


def test_an_asynchronous_event_that_fails_is_kept_with_its_error_and_not_repeated(make: Make) -> None:
    system = make()
    event = {"bucket": "photos", "bukket": "photos"}
    system.fire(event)
    (letter,) = kept(system)
    assert letter["requestPayload"] == event
    assert "'bukket' is unknown" in letter["responsePayload"]["errorMessage"]
    assert letter["requestContext"]["condition"] == "RetriesExhausted"
    assert letter["requestContext"]["approximateInvokeCount"] == len(system.local.invoked) == 1
    assert letter["requestContext"]["functionArn"].endswith(f":function:{AUDIT}:$LATEST")


def test_an_audit_that_succeeds_leaves_nothing_among_the_failures(make: Make, bucket: str) -> None:
    system = make()
    system.put(bucket, {"key": b"data"})
    system.fire({"bucket": bucket})
    assert system.summaries()[0]["complete"]
    assert kept(system) == []


def test_the_event_of_an_audit_without_an_answer_until_its_timeout_is_kept(make: Make, stub: StubServer) -> None:
    system = make(audit={"timeout": 3.0, "variables": {"AWS_ENDPOINT_URL_S3": stub.url}})
    stub.faults = [BLACK_HOLE]
    system.fire({"bucket": "photos"})
    (letter,) = kept(system)
    assert letter["requestPayload"] == {"bucket": "photos"}
    said = letter["responsePayload"]["errorMessage"]
    assert "did not answer before the deadline; start again with the event" in said


def test_an_event_of_the_worker_that_is_no_batch_is_told(make: Make) -> None:
    answer = make().local.invoke(HASHING, {"bucket": "photos"})
    assert answer.error == "Unhandled"
    assert "takes SQS batches only" in json.loads(answer.payload)["errorMessage"]


def test_a_record_without_a_body_fails_alone(make: Make, bucket: str) -> None:
    system = make()
    good = {"good": b"good"}
    key, data = next(iter(good.items()))
    (task,) = system.put(bucket, good)
    entry = {"key": key, "size": len(data), "eTag": task.etag}
    s3 = {"bucket": {"name": bucket}, "object": entry}
    body = json.dumps({"Records": [{"eventSource": "aws:s3", "eventName": "ObjectCreated:Put", "s3": s3}]})
    records = [{"messageId": "bad", "receiptHandle": "r"}, {"messageId": "good", "receiptHandle": "r", "body": body}]
    assert told(system.local.invoke(HASHING, {"Records": records})) == {
        "batchItemFailures": [{"itemIdentifier": "bad"}]
    }
    assert system.digests(bucket) == expected(good)
