"""The sample bucket and queue of the local AWS, with the objects that the samples in events/ name."""

from __future__ import annotations

import json
from typing import Final

BUCKET: Final = "auditor-sample"
QUEUE: Final = "auditor-sample-hash"

_SAMPLES: Final = {"public/index.html": "public-read", "shared/plan.md": "authenticated-read"}
_PRIVATE: Final = 40
OF_EVENTS: Final = {
    "photos/summer 2026/café 100%+.jpg": 204_800,
    "invoices/2026/0001.pdf": 48_213,
    "invoices/2026/Übersicht 100%+.csv": 911,
    "backups/full.tar": 1_048_576,
}
"""The objects that the samples in events/ name, with their sizes in bytes."""


def content(key: str) -> bytes:
    """Return the bytes of an object of OF_EVENTS. The bytes never change, because the samples have their ETags."""
    line, size = f"{key}\n".encode(), OF_EVENTS[key]
    return (line * (size // len(line) + 1))[:size]


def load(url: str) -> None:
    """Make the sample bucket: a few dozen private objects, one that everyone can read, one that any account can."""
    import boto3

    s3 = boto3.client("s3", endpoint_url=url, region_name="us-east-1")
    s3.create_bucket(Bucket=BUCKET)
    for number in range(_PRIVATE):
        s3.put_object(Bucket=BUCKET, Key=f"files/{number:03}.txt", Body=f"file {number}\n".encode())
    for key, acl in _SAMPLES.items():
        s3.put_object(Bucket=BUCKET, Key=key, Body=key.encode(), ACL=acl)
    for key in OF_EVENTS:
        s3.put_object(Bucket=BUCKET, Key=key, Body=content(key))
    s3.close()
    sqs = boto3.client("sqs", endpoint_url=url, region_name="us-east-1")
    letters = sqs.create_queue(QueueName=f"{QUEUE}-dead-letters")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=letters, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    redrive = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": 5})
    sqs.create_queue(QueueName=QUEUE, Attributes={"RedrivePolicy": redrive})
    sqs.close()
