"""Malformed events and audits that crash: the caller gets an error, and an asynchronous event is kept."""

from __future__ import annotations

import json
from typing import Any

from tests.system.e2e.deployment import SERVICE
from tests.system.e2e.system import AUDIT, VERIFY, Make, System, expected, told

HASHING = f"{SERVICE}-hashing"


def kept(system: System) -> list[dict[str, Any]]:
    """What the queue for failures holds, and then no more."""
    return [json.loads(body) for body in system.queues.taken(system.deployment.failure_queue())]


def test_a_malformed_event_is_told_by_name(make: Make) -> None:
    system = make()
    refused: list[tuple[str, Any, str]] = [
        (AUDIT, {"bukket": "photos"}, "'bukket' is unknown"),
        (AUDIT, {"bucket": 7}, "bucket is not text"),
        (AUDIT, {"prefix": "2024/"}, "prefix needs a bucket beside it"),
        (AUDIT, [1], "the event is not a JSON object"),
        (VERIFY, {"bucket": "photos", "record": True}, "'record' is unknown"),
        (HASHING, {"bucket": "photos"}, "takes SQS batches only"),
    ]
    for function, event, named in refused:
        answer = system.local.invoke(function, event)
        failure = json.loads(answer.payload)
        assert (answer.error, failure["errorType"]) == ("Unhandled", "UsageError"), event
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
