"""Call DynamoDB for one table: with retries, in batches and pages, and with errors that explain in one sentence."""

from __future__ import annotations

import asyncio
import re
import time
from collections import defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Hashable, Iterable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Final, TypeVar

from auditor.aio.backoff import backoff
from auditor.aio.groups import together
from auditor.aws.client import ThreadedClient
from auditor.aws.failures import DENIED, explain, is_throttle
from auditor.errors import CallFailed, LedgerError, LedgerReadOnlyError
from auditor.ledger.dynamodb.changes import Change, key_of
from auditor.ledger.dynamodb.items import WHOLE_KEY, Item, Name, number
from auditor.ledger.dynamodb.shards import cut_key, own_name, stored_name, stored_range

BATCH: Final = 100
"""Largest number of keys of one BatchGetItem call (DynamoDB API)."""
THREADS: Final = 16
_GROWTH: Final = 4  # of a page's limit: a caller who reads on after a small page wants far more
ATTEMPTS: Final = 10
_WRITES: Final = frozenset({"TransactWriteItems", "UpdateItem"})
_REFUSED: Final = "ConditionalCheckFailedException"
_CANCELLED: Final = "TransactionCanceledException"
_TRANSIENT: Final = frozenset({"TransactionConflictException", "TransactionInProgressException", "InternalServerError"})
_PASSING: Final = re.compile("TransactionConflict|ThrottlingError|ProvisionedThroughputExceeded")
SCHEMA_VERSION: Final = 3
"""The version of the layout of items in a table with shards. Version 2 has no shards; version 1 also had no seals,
and no item for this number. A table keeps the layout that its first writer chose."""
_UNSHARDED: Final = 2
_SCHEMA: Final = ("-", "-")
"""Name (pk and sk) of the item that holds the table's schema version. No other item has this name, because no bucket
has the name "-"."""

T = TypeVar("T")
R = TypeVar("R")


class ConditionFailed(Exception):  # noqa: N818 - a condition that does not hold is an answer, no error
    """Raised if DynamoDB refuses a write, because a condition of the write does not hold.

    at: the indexes of the refused changes, if the write was a transaction.
    """

    def __init__(self, at: Collection[int] = ()) -> None:
        self.at = at


class Table:
    """One DynamoDB table, called by at most THREADS calls at a time.

    Callers use the names that items have in a table without shards. This class converts them to the names that a table
    with shards stores.
    """

    def __init__(
        self,
        name: str,
        client: ThreadedClient,
        sleep: Callable[[float], Awaitable[None]],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.name = name
        self._client = client
        self._sleep = sleep
        self._permits = asyncio.Semaphore(THREADS)
        self._clock = clock
        self._place = 0
        self._declared, self._declaring = True, asyncio.Lock()  # until probe() says otherwise
        self.sharded = False

    def place(self) -> int:
        """Return a number that orders the writes of the ledger: microseconds since the epoch, but larger with each
        call.
        """
        self._place = max(self._place + 1, int(self._clock() * 1_000_000))
        return self._place

    async def get(self, name: Name) -> Item | None:
        answer = await self._call("GetItem", TableName=self.name, Key=self._key(name), ConsistentRead=True)
        item: Item | None = answer.get("Item")
        return item and self._own([item])[0]

    async def get_many(self, names: Iterable[Name], *, consistent: bool = False) -> dict[Name, Item]:
        """Return the items with these names, by name. A name without an item is left out.

        consistent: True to see the newest writes.
        """
        wanted = {self._stored(name): name for name in names}
        keys = [key_of(stored) for stored in wanted]
        found: dict[Name, Item] = {}
        for start in range(0, len(keys), BATCH):
            items = await self._get_batch({"Keys": keys[start : start + BATCH], "ConsistentRead": consistent})
            names = [wanted[item["pk"]["S"], item["sk"]["S"]] for item in items]
            found.update(zip(names, self._own(items), strict=True))
        return found

    async def _get_batch(self, wanted: dict[str, Any]) -> list[Item]:
        """Return the items of one BatchGetItem call. Keys that DynamoDB leaves unprocessed are asked for again, after
        pauses that grow.
        """
        items: list[Item] = []
        for attempt in range(ATTEMPTS):
            answer = await self._call("BatchGetItem", RequestItems={self.name: wanted})
            # If the request names the table by its ARN, the answer may name it by its name.
            items += [item for found in answer["Responses"].values() for item in found]
            keys = [key for left in answer.get("UnprocessedKeys", {}).values() for key in left["Keys"]]
            if not keys:
                return items
            wanted = wanted | {"Keys": keys}
            await self._pause(attempt)
        raise LedgerError(
            f"the ledger table {self.name!r} left {len(wanted['Keys'])} reads unprocessed after {ATTEMPTS} attempts:"
            " raise its read capacity or make it on-demand"
        )

    async def pages(
        self, operation: str, *, largest: int | None = None, **arguments: Any
    ) -> AsyncGenerator[list[Item], None]:
        """Yield the items of a Query or a Scan, page by page. A page has at most 1 MB.

        largest: up to which the argument Limit grows; None if it stays. arguments: of the call, but the table's name.
        """
        while True:
            answer = await self._call(operation, TableName=self.name, **arguments)
            yield self._own(answer["Items"])
            if not answer.get("LastEvaluatedKey"):
                return
            arguments["ExclusiveStartKey"] = answer["LastEvaluatedKey"]
            if largest is not None:
                arguments["Limit"] = min(_GROWTH * arguments["Limit"], largest)

    async def query(
        self, pk: str, first: str, last: str | None = None, *, pages: int | None = None, **arguments: Any
    ) -> list[Item]:
        """Return the items with this pk whose sk is from `first` to `last`. If `last` is None, return all items from
        `first` on.

        pages: largest number of pages to read; None to read all.
        """
        if self.sharded:
            pk, first, last = stored_range(pk, first, last)
        values = {":pk": {"S": pk}, ":first": {"S": first}} | arguments.pop("ExpressionAttributeValues", {})
        condition = "pk = :pk AND sk >= :first"
        if last is not None:
            condition, values = "pk = :pk AND sk BETWEEN :first AND :last", values | {":last": {"S": last}}
        found: list[Item] = []
        reading = self.pages("Query", KeyConditionExpression=condition, ExpressionAttributeValues=values, **arguments)
        async with aclosing(reading):
            async for page in reading:
                found += page
                pages = None if pages is None else pages - 1
                if pages == 0:
                    break
        return found

    async def update(self, change: Change, *, returned: str = "NONE") -> Item:
        """Make one change by UpdateItem. Raises ConditionFailed if its condition does not hold.

        returned: ReturnValues of UpdateItem, which choose the attributes in the answer.
        """
        await self._declare()
        answer = await self._call("UpdateItem", TableName=self.name, ReturnValues=returned, **self._arguments(change))
        found: Item = answer.get("Attributes", {})
        return found

    async def update_all(self, changes: Sequence[Change]) -> None:
        """Make all changes in one transaction. Raises ConditionFailed if one of their conditions does not hold."""
        await self._declare()
        updates = [{"Update": {"TableName": self.name, **self._arguments(change)}} for change in changes]
        await self._call("TransactWriteItems", TransactItems=updates)

    async def probe(self, *, shards: bool = False) -> None:
        """Read the table's schema version at the start of a run, so that a missing table or permission shows now, not
        later.

        shards: True to give an empty table shards. Raises LedgerError, also if a newer release has written the table,
        or if shards are wanted in a table that has items but no shards.
        """
        version = number(await self.get(_SCHEMA) or {}, "schema") or 0
        if version > SCHEMA_VERSION:
            raise LedgerError(
                f"the ledger table {self.name!r} was written by a newer auditor (schema {version}): upgrade this one"
            )
        self._declared = version >= _UNSHARDED
        self.sharded = version == SCHEMA_VERSION
        if shards and not self.sharded:
            if (await self._call("Scan", TableName=self.name, Limit=1, ConsistentRead=True))["Items"]:
                raise LedgerError(
                    f"the ledger table {self.name!r} has items without shards: leave ?shards out, or name an empty one"
                )
            self.sharded = True
            await self._declare()
            if not self.sharded:  # another process has begun the table without
                await self.probe(shards=True)

    async def _declare(self) -> None:
        """Write the schema version into a table that has none. This happens once, before the first item of this
        process.
        """
        async with self._declaring:
            if not self._declared:
                change = Change(_SCHEMA).put("schema", SCHEMA_VERSION if self.sharded else _UNSHARDED)
                arguments = change.when("schema", None).arguments()
                try:
                    await self._call("UpdateItem", TableName=self.name, **arguments)
                    self._declared = True
                except ConditionFailed:  # another process did it
                    await self.probe()

    def _stored(self, name: Name) -> Name:
        return stored_name(name) if self.sharded else name

    def _key(self, name: Name) -> dict[str, dict[str, str]]:
        return key_of(self._stored(name))

    def _own(self, items: list[Item]) -> list[Item]:
        return [own_name(item) for item in items] if self.sharded else items

    def _arguments(self, change: Change) -> dict[str, Any]:
        if self.sharded:
            change.once(WHOLE_KEY, cut_key(change.name))
        return change.arguments() | {"Key": self._key(change.name)}

    async def _call(self, operation: str, **arguments: Any) -> dict[str, Any]:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                async with self._permits:
                    return await self._client.call(operation, **arguments)
            except CallFailed as failure:
                if failure.code == _REFUSED:
                    raise ConditionFailed from failure
                if failure.code == _CANCELLED and (refused := _refused(failure)):
                    raise ConditionFailed(refused) from failure
                if attempt == ATTEMPTS or not _is_transient(failure):
                    raise explained(self.name, self._client.region, failure) from failure
            await self._pause(attempt)
        raise AssertionError("the last attempt returned or raised")

    async def _pause(self, attempt: int) -> None:
        await self._sleep(backoff(attempt, 0.05, 5.0))


def _is_transient(failure: CallFailed) -> bool:
    """True if a retry may succeed, although the SDK has made six attempts already.

    A lost connection does not count as transient: it has failed six times in a row.
    """
    if failure.code == _CANCELLED:
        return _PASSING.search(failure.message) is not None
    return failure.code in _TRANSIENT or is_throttle(failure) or failure.status == 500


def _refused(failure: CallFailed) -> list[int]:
    """Return the indexes of the changes in a transaction whose conditions did not hold.

    The end of DynamoDB's message lists a reason for each change (DynamoDB API, TransactionCanceledException).
    """
    reasons = failure.message.rpartition("[")[2].rstrip("]").split(", ")
    return [index for index, reason in enumerate(reasons) if reason == "ConditionalCheckFailed"]


async def in_order(items: Iterable[T], group: Callable[[T], Hashable], call: Callable[[T], Awaitable[R]]) -> list[R]:
    """Call `call` for each item, many at the same time, and return the results in the order of the items.

    Items for which `group` returns the same value are called one after the other.
    """
    groups: Mapping[Hashable, list[tuple[int, T]]] = _grouped(items, group)
    waiting = iter(groups.values())
    answers: dict[int, R] = {}

    async def work() -> None:
        for members in waiting:
            for index, item in members:
                answers[index] = await call(item)

    await together(work() for _ in range(min(THREADS, len(groups))))
    return [answers[index] for index in range(len(answers))]


def _grouped(items: Iterable[T], group: Callable[[T], Hashable]) -> Mapping[Hashable, list[tuple[int, T]]]:
    found: dict[Hashable, list[tuple[int, T]]] = defaultdict(list)
    for index, item in enumerate(items):
        found[group(item)].append((index, item))
    return found


def explained(table: str, region: str, failure: CallFailed) -> LedgerError:
    """Return the LedgerError for a failed call: one sentence that names the table and the fix."""
    name, action = f"the ledger table {table!r} in {region}", failure.action
    if failure.code == "ValidationException":
        return LedgerError(f"{name} refuses {action} (ValidationException): its keys must be pk and sk, strings")
    absent = "make it (pk and sk, strings), or fix --ledger and --region"
    kind = LedgerReadOnlyError if failure.code in DENIED and action in _WRITES else LedgerError
    return kind(explain(name, failure, allow=f"dynamodb:{action}", absent=absent))
