"""The demo's DynamoDB undoes a failed transaction, and answers one call after the other; other services do not."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.exceptions import ClientError

from auditor.cli.demo.moto_dynamodb import one_at_a_time
from tools.local_aws.server import AtomicMotoServer

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

CALLS = 4
UPDATE = "DynamoDB_20120810.UpdateItem"


@pytest.fixture
def dynamodb() -> Iterator[Any]:
    server = AtomicMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    client = boto3.client(
        "dynamodb",
        endpoint_url=f"http://{host}:{port}",
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",
    )
    yield client
    client.close()
    server.stop()


def key(name: str, with_range: bool) -> dict[str, Any]:
    return {"pk": {"S": name}} | ({"sk": {"S": "r"}} if with_range else {})


def update(table: str, name: str, with_range: bool, condition: str) -> dict[str, Any]:
    return {
        "Update": {
            "TableName": table,
            "Key": key(name, with_range),
            "UpdateExpression": "SET n = :n",
            "ConditionExpression": condition,
            "ExpressionAttributeValues": {":n": {"N": "2"}},
        }
    }


@pytest.mark.parametrize("with_range", [False, True])
def test_a_failed_transaction_changes_nothing(dynamodb: Any, with_range: bool) -> None:
    table = f"undone-{with_range}"
    names = ["pk", "sk"] if with_range else ["pk"]
    dynamodb.create_table(
        TableName=table,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in names],
        KeySchema=[
            {"AttributeName": name, "KeyType": kind} for name, kind in zip(names, ("HASH", "RANGE"), strict=False)
        ],
    )
    old = key("old", with_range) | {"n": {"N": "1"}, "text": {"S": "kept"}}
    dynamodb.put_item(TableName=table, Item=old)
    writes = [
        update(table, "old", with_range, "attribute_exists(pk)"),
        update(table, "new", with_range, "attribute_not_exists(pk)"),
    ]
    refused = update(table, "refused", with_range, "attribute_exists(pk)")

    with pytest.raises(ClientError, match="ConditionalCheckFailed"):
        dynamodb.transact_write_items(TransactItems=[*writes, refused])
    assert dynamodb.scan(TableName=table)["Items"] == [old]

    dynamodb.transact_write_items(TransactItems=writes)
    found = dynamodb.scan(TableName=table)["Items"]
    assert sorted((one["pk"]["S"], one["n"]["N"]) for one in found) == [("new", "2"), ("old", "2")]


def test_calls_to_dynamodb_never_overlap() -> None:
    inside, most = 0, 0

    def app(_environ: WSGIEnvironment, _start: StartResponse) -> Iterable[bytes]:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        time.sleep(0.001)
        inside -= 1
        return [b"done"]

    guarded = one_at_a_time(app)
    with ThreadPoolExecutor(CALLS) as threads:
        asked = [threads.submit(guarded, {"HTTP_X_AMZ_TARGET": UPDATE}, lambda *_: print) for _ in range(5 * CALLS)]
        assert [list(answer.result()) for answer in asked] == [[b"done"]] * (5 * CALLS)
    assert most == 1


def test_calls_to_other_services_may_overlap() -> None:
    together = Barrier(CALLS, timeout=30)

    def app(_environ: WSGIEnvironment, _start: StartResponse) -> Iterable[bytes]:
        together.wait()  # breaks unless all calls come
        return [b"done"]

    guarded = one_at_a_time(app)
    with ThreadPoolExecutor(CALLS) as threads:
        target = {"HTTP_X_AMZ_TARGET": "AmazonSQS.SendMessage"}
        asked = [threads.submit(guarded, target, lambda *_: print) for _ in range(CALLS)]
        assert [list(answer.result()) for answer in asked] == [[b"done"]] * CALLS
