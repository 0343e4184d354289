"""The demo's DynamoDB undoes a failed transaction, and answers one call after the other; other services do not."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
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


def test_a_failed_transaction_changes_nothing(dynamodb: Any) -> None:
    for names in (["pk"], ["pk", "sk"]):
        table = f"undone-{len(names)}"
        kinds = zip(names, ("HASH", "RANGE"), strict=False)
        dynamodb.create_table(
            TableName=table,
            BillingMode="PAY_PER_REQUEST",
            AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in names],
            KeySchema=[{"AttributeName": name, "KeyType": kind} for name, kind in kinds],
        )

        def update(key: str, condition: str, table: str = table, names: list[str] = names) -> dict[str, Any]:
            update = {
                "TableName": table,
                "Key": {name: {"S": key} for name in names},
                "UpdateExpression": "SET n = :n",
                "ConditionExpression": condition,
                "ExpressionAttributeValues": {":n": {"N": "2"}},
            }
            return {"Update": update}

        old = {name: {"S": "old"} for name in names} | {"n": {"N": "1"}, "text": {"S": "kept"}}
        dynamodb.put_item(TableName=table, Item=old)
        writes = [update("old", "attribute_exists(pk)"), update("new", "attribute_not_exists(pk)")]
        with pytest.raises(ClientError, match="ConditionalCheckFailed"):
            dynamodb.transact_write_items(TransactItems=[*writes, update("refused", "attribute_exists(pk)")])
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
