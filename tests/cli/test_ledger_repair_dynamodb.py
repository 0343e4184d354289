"""A damaged row of a DynamoDB ledger is found and written anew by each look-up, of however few objects."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from uuid import uuid4

import boto3
import pytest

from auditor.hashing.queue.message import HashMessage, HashTask, encode
from auditor.ledger.dynamodb.ledger import create_table
from auditor.ledger.dynamodb.table import own_name
from tests.cli.conftest import Run


@pytest.mark.parametrize("versioning", ["", "Enabled"], ids=["unversioned", "versions"])
def test_each_command_heals_and_counts_the_row(
    run: Run, moto_url: str, versioning: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"rotted-{uuid4().hex}"
    asyncio.run(create_table(name, endpoint_url=moto_url))
    for variable, value in {"ENDPOINT_URL": moto_url, "LEDGER": f"dynamodb:{name}", "FAIL_ON": "never"}.items():
        monkeypatch.setenv(f"AUDITOR_{variable}", value)
    s3: Any = boto3.client("s3", endpoint_url=moto_url)
    sqs: Any = boto3.client("sqs", endpoint_url=moto_url)
    table: Any = boto3.resource("dynamodb", endpoint_url=moto_url).Table(name)
    s3.create_bucket(Bucket=name)
    if versioning:
        s3.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": versioning})
    etags = {key: s3.put_object(Bucket=name, Key=key, Body=key.encode())["ETag"].strip('"') for key in ("a", "b", "c")}

    def do(*arguments: str) -> dict[str, Any]:
        code, out, err = run(*arguments, "--format", "json")
        assert (code, "DigestConflict" in err) == (0, False), err
        return dict(json.loads(out))

    def rot() -> None:
        rows = [item for item in table.scan()["Items"] if "sha256" in item and not item["sk"].startswith(" ")]
        names = [{part: {"S": item[part]} for part in ("pk", "sk")} for item in rows]
        (row,) = [row for row, one in zip(rows, names, strict=True) if own_name(one)["pk"]["S"].endswith("/b")]
        table.put_item(Item=row | {"sha256": "0" * 64})

    hashing = do("hash", f"s3://{name}", *(["--versions"] if versioning else []))["hashing"]
    assert hashing["hashed_now"] == 3
    for command, healed in ((("hash",), 1), (("hash",), 0), (("audit", "--hash"), 1)):
        if healed:
            rot()
        found = do(*command, f"s3://{name}")
        assert (found["hashing"]["known"], found["healed"], found["hashing"]["failed"]) == (3, healed, {}), command
    rot()
    queue: str = sqs.create_queue(QueueName=name)["QueueUrl"]
    tasks = tuple(HashTask(key, None, etag, 1) for key, etag in etags.items())
    sqs.send_message(QueueUrl=queue, MessageBody=encode(HashMessage("run", name, ("sha256",), tasks)))
    found = do("work", "--queue", queue, "--idle", "0.2", "--concurrency", "1")
    assert (found["known"], found["hashed"], found["healed"]) == (3, 0, 1)
    assert do("ledger", "--check")["rows"]["damaged"] == 0
    for client in (s3, sqs, table.meta.client):
        client.close()
