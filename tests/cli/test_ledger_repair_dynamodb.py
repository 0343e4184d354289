"""A damaged row of a DynamoDB ledger is found and written anew by each look-up, of however few objects."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import boto3
import pytest

from auditor.hashing.queue.message import HashMessage, HashTask, encode
from auditor.ledger.dynamodb.ledger import create_table
from auditor.ledger.dynamodb.shards import own_name
from tests.cli.conftest import Run


class Cloud:
    """A bucket, a queue and a ledger on moto. The row of one of the bucket's three objects is rotted."""

    def __init__(self, run: Run, url: str, name: str, versioning: str) -> None:
        self.name = name
        self._run = run
        self._table: Any = boto3.resource("dynamodb", endpoint_url=url).Table(name)
        self._s3: Any = boto3.client("s3", endpoint_url=url)
        self._sqs: Any = boto3.client("sqs", endpoint_url=url)
        self.queue: str = self._sqs.create_queue(QueueName=name)["QueueUrl"]
        self._s3.create_bucket(Bucket=name)
        if versioning:
            self._s3.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": versioning})
        for key in ("a", "b", "c"):
            self._s3.put_object(Bucket=name, Key=key, Body=key.encode())
        assert self.do("hash", f"s3://{name}", *(["--versions"] if versioning else []))["hashing"]["hashed_now"] == 3
        self.rot("b")

    def do(self, *arguments: str) -> dict[str, Any]:
        """Run a command that ends without a conflict and without a hole, and return its JSON."""
        code, out, err = self._run(*arguments, "--format", "json")
        assert (code, "DigestConflict" in err) == (0, False), err
        found: dict[str, Any] = json.loads(out)
        return found

    def rot(self, key: str) -> None:
        items = [item for item in self._table.scan()["Items"] if "sha256" in item]
        rows = [item for item in items if not item["sk"].startswith(" ")]
        names = [{part: {"S": item[part]} for part in ("pk", "sk")} for item in rows]
        (row,) = [row for row, name in zip(rows, names, strict=True) if own_name(name)["pk"]["S"].endswith(f"/{key}")]
        self._table.put_item(Item=row | {"sha256": "0" * 64})

    def send(self) -> None:
        """Send the three objects to the queue, without their version IDs."""
        listed = self._s3.list_objects_v2(Bucket=self.name)["Contents"]
        tasks = [HashTask(one["Key"], None, one["ETag"].strip('"'), one["Size"]) for one in listed]
        self._sqs.send_message(
            QueueUrl=self.queue, MessageBody=encode(HashMessage("run", self.name, ("sha256",), tuple(tasks)))
        )

    def close(self) -> None:
        for client in (self._s3, self._sqs, self._table.meta.client):
            client.close()


@pytest.fixture
async def made(moto_url: str) -> str:
    """A ledger's table, empty."""
    name = f"rotted-{uuid4().hex}"
    await create_table(name, endpoint_url=moto_url)
    return name


@pytest.fixture
def cloud(
    run: Run, moto_url: str, made: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[Cloud]:
    for name, value in {"ENDPOINT_URL": moto_url, "LEDGER": f"dynamodb:{made}", "FAIL_ON": "never"}.items():
        monkeypatch.setenv(f"AUDITOR_{name}", value)
    opened = Cloud(run, moto_url, made, request.param)
    yield opened
    opened.close()


@pytest.mark.parametrize("cloud", ["", "Enabled"], ids=["unversioned", "versions"], indirect=True)
def test_each_command_heals_and_counts_the_row(cloud: Cloud) -> None:
    found = cloud.do("hash", f"s3://{cloud.name}")
    assert (found["hashing"]["known"], found["healed"], found["holes"]) == (3, 1, [])
    found = cloud.do("hash", f"s3://{cloud.name}")
    assert (found["hashing"]["known"], found["healed"]) == (3, 0)
    cloud.rot("b")
    found = cloud.do("audit", f"s3://{cloud.name}", "--hash")
    assert (found["hashing"]["known"], found["healed"], found["hashing"]["failed"]) == (3, 1, {})
    cloud.rot("b")
    cloud.send()
    found = cloud.do("work", "--queue", cloud.queue, "--idle", "0.2")
    assert (found["known"], found["hashed"], found["healed"]) == (3, 0, 1)
    assert cloud.do("ledger", "--check")["rows"]["damaged"] == 0
