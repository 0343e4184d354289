"""The command that reads what S3's events name, on moto."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import boto3

from tests.cli.conftest import Run


def acl_updated(bucket: str, key: str) -> str:
    detail = {"version": "1", "bucket": {"name": bucket}, "object": {"key": key, "etag": "e"}}
    return json.dumps({"source": "aws.s3", "detail-type": "Object ACL Updated", "detail": detail})


def test_object_that_an_event_names_is_told_and_explained(run: Run, moto_url: str) -> None:
    s3: Any = boto3.client("s3", endpoint_url=moto_url)
    sqs: Any = boto3.client("sqs", endpoint_url=moto_url)
    bucket = f"audited-{uuid4().hex[:12]}"
    s3.create_bucket(Bucket=bucket)
    s3.put_object(Bucket=bucket, Key="a b/c.txt", Body=b"x")
    queue = sqs.create_queue(QueueName=f"events-{uuid4().hex[:12]}")["QueueUrl"]
    renew = ("renew", "--events", queue, "--out", "runs", "--idle", "1", "--endpoint-url", moto_url)
    sqs.send_message(QueueUrl=queue, MessageBody=acl_updated(bucket, "a b/c.txt"))
    code, out, err = run(*renew)  # no run says by which rules to judge
    assert (code, out) == (0, "1 message, 0 left on the queue: 0 objects read, 0 undecided, 0 newly exposed\n"), err
    audit = ("audit", f"s3://{bucket}", "--out", "runs", "--only", "O02", "--endpoint-url", moto_url)
    code, out, err = run(*audit, "--format", "json")
    assert code == 0, err
    folder = json.loads(out)["out"]
    s3.put_object_acl(Bucket=bucket, Key="a b/c.txt", ACL="public-read")
    sqs.send_message(QueueUrl=queue, MessageBody=acl_updated(bucket, "a b/c.txt"))
    code, out, err = run(*renew)
    assert (code, out) == (3, "1 message, 0 left on the queue: 1 object read, 0 undecided, 1 newly exposed\n"), err
    code, out, err = run("explain", f"s3://{bucket}/a b/c.txt", "--run", folder)
    assert code == 0, err
    assert "exposed to anyone on the internet" in out
    assert "because of an event of S3" in out
    sqs.send_message(QueueUrl=queue, MessageBody="not JSON")
    code, out, err = run(*renew)
    assert (code, out.partition(":")[0]) == (4, "1 message, 1 left on the queue")
    s3.close()
    sqs.close()
