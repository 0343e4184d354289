"""The shared ledger: one DynamoDB table, pk "bucket/key", sk "version#etag", one attribute an algorithm."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

from auditor.errors import CallFailed, LedgerError
from auditor.faults import BAD_CREDENTIALS, EXPIRED
from auditor.ledgers.interface import Entry, Ledger
from auditor.ledgers.matching import NULL, Row, conflict, match
from auditor.models import ObjectRef
from auditor.sdk import ThreadedClient, open_client
from auditor.tasks import together

BATCH: Final = 100
"""Most keys of one BatchGetItem (DynamoDB API)."""
THREADS: Final = 16
RESENDS: Final = 10
CREDENTIALS: Final = EXPIRED | BAD_CREDENTIALS | {"UnrecognizedClientException"}
_OWN: Final = frozenset({"pk", "sk", "size", "hashed_at"})
"""Attributes that are not digests."""

_Item = dict[str, dict[str, str]]
_Identity = tuple[str, str]


class DynamoLedger:
    """A ledger in one table. Writes are conditional: a digest that stands there is never replaced."""

    def __init__(
        self, table: str, client: ThreadedClient, *, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        self._table = table
        self._client = client
        self._sleep = sleep
        self._permits = asyncio.Semaphore(THREADS)

    async def known(self, bucket: str, refs: Sequence[ObjectRef], algorithms: Sequence[str]) -> list[Mapping[str, str]]:
        """Exact identities first, in batches; then, for refs without a version, whatever stands under their key.

        The second step finds what a notification recorded under a version that the listing does not name.
        """
        rows = await self._get({identity: None for ref in refs for identity in _identities(bucket, ref)})
        found: list[Mapping[str, str]] = [
            match([rows[one] for one in _identities(bucket, ref) if one in rows], ref, algorithms) for ref in refs
        ]
        missing = [
            index
            for index, ref in enumerate(refs)
            if ref.version_id in (None, NULL) and len(found[index]) < len(set(algorithms))
        ]
        for start in range(0, len(missing), THREADS):  # few tasks at a time, however many refs there are
            part = missing[start : start + THREADS]
            answers = await together(self._query(bucket, refs[index]) for index in part)
            for index, answer in zip(part, answers, strict=True):
                found[index] = match(answer, refs[index], algorithms)
        return found

    async def record(self, entry: Entry) -> bool:
        for _ in range(2):
            try:
                before = await self._update(entry)
            except CallFailed as failure:
                if failure.code != "ConditionalCheckFailedException":
                    raise
                stored = await self._call("GetItem", Key=_key(*_identity(entry)), ConsistentRead=True)
                _raise_conflict(entry, stored.get("Item"))
            else:
                return any(name not in before for name in entry.digests)
        raise LedgerError(f"the ledger table {self._table!r} changes while it is written: stop what deletes its items")

    async def probe(self) -> None:
        """Read one item that is not there: a missing table or permission shows now, not in mid-run."""
        await self._call("GetItem", Key=_key("-", "-"))

    async def _call(self, operation: str, **arguments: Any) -> dict[str, Any]:
        try:
            async with self._permits:
                return await self._client.call(operation, TableName=self._table, **arguments)
        except CallFailed as failure:
            if failure.code == "ConditionalCheckFailedException":
                raise
            raise _explain(self._table, self._client.region, failure) from failure

    async def _get(self, identities: Iterable[_Identity]) -> dict[_Identity, Row]:
        wanted = list(identities)
        found: dict[_Identity, Row] = {}
        parts = [wanted[start : start + BATCH] for start in range(0, len(wanted), BATCH)]
        for part in parts:
            for item in await self._get_batch([_key(*identity) for identity in part]):
                found[item["pk"]["S"], item["sk"]["S"]] = _row(item)
        return found

    async def _get_batch(self, keys: list[_Item]) -> list[_Item]:
        """Up to 100 items; what DynamoDB leaves unprocessed is asked for again, later and later."""
        items: list[_Item] = []
        for attempt in range(RESENDS):
            try:
                async with self._permits:
                    answer = await self._client.call("BatchGetItem", RequestItems={self._table: {"Keys": keys}})
            except CallFailed as failure:
                raise _explain(self._table, self._client.region, failure) from failure
            # One table was asked; under which of its names it answers, where it was asked by its ARN, is its to say.
            items += [item for found in answer["Responses"].values() for item in found]
            keys = [key for left in answer.get("UnprocessedKeys", {}).values() for key in left["Keys"]]
            if not keys:
                return items
            await self._sleep(min(5.0, 0.05 * 2**attempt) * random.uniform(0.5, 1.0))  # noqa: S311 - spreads retries
        raise LedgerError(
            f"the ledger table {self._table!r} left {len(keys)} reads unprocessed after {RESENDS} attempts:"
            " raise its read capacity or make it on-demand"
        )

    async def _query(self, bucket: str, ref: ObjectRef) -> list[Row]:
        arguments: dict[str, Any] = {
            "KeyConditionExpression": "pk = :pk",
            "FilterExpression": "#size = :size",
            "ExpressionAttributeNames": {"#size": "size"},
            "ExpressionAttributeValues": {":pk": {"S": f"{bucket}/{ref.key}"}, ":size": {"N": str(ref.size)}},
        }
        rows: list[Row] = []
        while True:
            answer = await self._call("Query", **arguments)
            rows += [_row(item) for item in answer["Items"]]
            if not answer.get("LastEvaluatedKey"):
                return rows
            arguments["ExclusiveStartKey"] = answer["LastEvaluatedKey"]

    async def _update(self, entry: Entry) -> _Item:
        """Add digests, size and time where they are absent; returns the item as it was."""
        names = {"#size": "size", "#at": "hashed_at"}
        values = {":size": {"N": str(entry.size)}, ":at": {"S": entry.hashed_at}}
        sets = ["#size = :size", "#at = if_not_exists(#at, :at)"]
        conditions = ["(attribute_not_exists(#size) OR #size = :size)"]
        for index, (algorithm, digest) in enumerate(entry.digests.items()):
            names[f"#d{index}"], values[f":d{index}"] = algorithm, {"S": digest}
            sets.append(f"#d{index} = :d{index}")
            conditions.append(f"(attribute_not_exists(#d{index}) OR #d{index} = :d{index})")
        answer = await self._call(
            "UpdateItem",
            Key=_key(*_identity(entry)),
            UpdateExpression="SET " + ", ".join(sets),
            ConditionExpression=" AND ".join(conditions),
            ExpressionAttributeNames=names,
            ExpressionAttributeValues=values,
            ReturnValues="ALL_OLD",
        )
        before: _Item = answer.get("Attributes", {})
        return before


@asynccontextmanager
async def open_dynamodb(
    name: str,
    *,
    region: str | None = None,
    endpoint_url: str | None = None,
    profile: str | None = None,
    clock: Callable[[], float] = time.time,
) -> AsyncIterator[Ledger]:
    """The ledger in the table `name`, which must be there (create_table makes one)."""
    async with open_client(
        "dynamodb", threads=THREADS, region=region, endpoint_url=endpoint_url, profile=profile
    ) as client:
        ledger = DynamoLedger(name, client)
        await ledger.probe()
        yield ledger


async def create_table(
    name: str, *, region: str | None = None, endpoint_url: str | None = None, profile: str | None = None
) -> None:
    """Make a table as the ledger needs it, paid per request; a table of that name that is there stays as it is."""
    async with open_client("dynamodb", threads=1, region=region, endpoint_url=endpoint_url, profile=profile) as client:
        try:
            await client.call(
                "CreateTable",
                TableName=name,
                BillingMode="PAY_PER_REQUEST",
                AttributeDefinitions=[{"AttributeName": part, "AttributeType": "S"} for part in ("pk", "sk")],
                KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
            )
        except CallFailed as failure:
            if failure.code != "ResourceInUseException":
                raise _explain(name, client.region, failure) from failure


def _identity(entry: Entry) -> _Identity:
    return f"{entry.bucket}/{entry.key}", f"{entry.version_id or NULL}#{entry.etag}"


def _identities(bucket: str, ref: ObjectRef) -> list[_Identity]:
    """Where rows for this very ref may stand: under its own version, and under none."""
    return [
        (f"{bucket}/{ref.key}", f"{version}#{ref.etag}") for version in dict.fromkeys((ref.version_id or NULL, NULL))
    ]


def _key(pk: str, sk: str) -> _Item:
    return {"pk": {"S": pk}, "sk": {"S": sk}}


def _row(item: _Item) -> Row:
    version, _, etag = item["sk"]["S"].partition("#")
    digests = {name: value["S"] for name, value in item.items() if name not in _OWN and "S" in value}
    return Row(version, etag, int(item["size"]["N"]), digests)


def _raise_conflict(entry: Entry, item: _Item | None) -> None:
    """Raise DigestConflict where the stored item says something else; return where it was deleted meanwhile."""
    if item is None:
        return
    row = _row(item)
    if row.size != entry.size:
        raise conflict(entry, "size")
    for algorithm, digest in entry.digests.items():
        if row.digests.get(algorithm, digest) != digest:
            raise conflict(entry, algorithm)


def _explain(table: str, region: str, failure: CallFailed) -> LedgerError:
    name = f"the ledger table {table!r} in {region}"
    if failure.code in CREDENTIALS:
        return LedgerError(f"{name} refuses the credentials ({failure.code}): renew them, or check --profile")
    match failure.code:
        case "ResourceNotFoundException":
            return LedgerError(f"{name} does not exist: make it (pk and sk, strings), or fix --ledger and --region")
        case "AccessDeniedException":
            return LedgerError(
                f"{name} refuses {failure.action} (AccessDeniedException): allow dynamodb:{failure.action}"
            )
        case "ValidationException":
            return LedgerError(
                f"{name} refuses {failure.action} (ValidationException): its keys must be pk and sk, strings"
            )
        case "ConnectionError" | "Timeout":
            return LedgerError(
                f"{name} cannot be reached ({failure.code}): check the network, --region and --endpoint-url"
            )
        case code:
            return LedgerError(f"{name} fails at {failure.action}: {code}")
