"""Call DynamoDB for one table: with retries, batches and pages, and with errors of one sentence."""

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
"""Number of keys of one BatchGetItem, at most (DynamoDB API)."""
THREADS: Final = 16
ATTEMPTS: Final = 10
_WRITES: Final = frozenset({"TransactWriteItems", "UpdateItem"})
_REFUSED: Final = "ConditionalCheckFailedException"
_CANCELLED: Final = "TransactionCanceledException"
_TRANSIENT: Final = frozenset({"TransactionConflictException", "TransactionInProgressException", "InternalServerError"})
_PASSING: Final = re.compile("TransactionConflict|ThrottlingError|ProvisionedThroughputExceeded")
SCHEMA_VERSION: Final = 3
"""The present version of the layout of items. Version 2 had no shards, and version 1 no seals and no item for the
version. A table keeps the layout with which it was begun."""
_UNSHARDED: Final = 2
_SCHEMA: Final = ("-", "-")
"""The item that has the schema version. No bucket has this name."""

T = TypeVar("T")
R = TypeVar("R")


class ConditionFailed(Exception):  # noqa: N818 - a condition that does not hold is an answer, no error
    """A condition of a write did not hold. at: in a transaction, the indexes of such changes."""

    def __init__(self, at: Collection[int] = ()) -> None:
        self.at = at


class Table:
    """Makes the calls on one table, at most THREADS at once. Callers name items as in a table without shards. Only this
    class knows the names that a table with shards stores.
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
        self._declared = True  # until probe() says otherwise
        self._declaring = asyncio.Lock()
        self.sharded = False

    def place(self) -> int:
        """Return a number that grows with each call, by which writes are ordered: microseconds since the epoch."""
        self._place = max(self._place + 1, int(self._clock() * 1_000_000))
        return self._place

    async def get(self, name: Name) -> Item | None:
        answer = await self._call("GetItem", TableName=self.name, Key=self._key(name), ConsistentRead=True)
        item: Item | None = answer.get("Item")
        return item and self._own([item])[0]

    async def get_many(self, names: Iterable[Name], *, consistent: bool = False) -> dict[Name, Item]:
        """Return the items with these names. Items that do not exist are left out. consistent: True to see the newest
        writes.
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
        """Return the items of one BatchGetItem. Ask again, after growing pauses, for keys left unprocessed."""
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

    async def pages(self, operation: str, **arguments: Any) -> AsyncGenerator[list[Item], None]:
        """Yield the items of a Query or a Scan, page by page. A page has at most 1 MB."""
        while True:
            answer = await self._call(operation, TableName=self.name, **arguments)
            yield self._own(answer["Items"])
            if not answer.get("LastEvaluatedKey"):
                return
            arguments["ExclusiveStartKey"] = answer["LastEvaluatedKey"]

    async def query(
        self, pk: str, first: str, last: str | None = None, *, pages: int | None = None, **arguments: Any
    ) -> list[Item]:
        """Return the items of one pk (an object key) whose sk is from `first` to `last` (None: to the end). pages: read
        at most so many pages; None for all.
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
        """Make the change by UpdateItem. Raises ConditionFailed. returned: ReturnValues of UpdateItem."""
        await self._declare()
        answer = await self._call("UpdateItem", TableName=self.name, ReturnValues=returned, **self._arguments(change))
        found: Item = answer.get("Attributes", {})
        return found

    async def update_all(self, changes: Sequence[Change]) -> None:
        """Make all changes in one transaction. Raises ConditionFailed if one of their conditions does not hold."""
        await self._declare()
        updates = [{"Update": {"TableName": self.name, **self._arguments(change)}} for change in changes]
        await self._call("TransactWriteItems", TransactItems=updates)

    async def probe(self) -> None:
        """Read the table's schema version, so that a missing table or permission shows now, not in the middle of a run.
        Raises LedgerError also for the schema of a newer release.
        """
        version = number(await self.get(_SCHEMA) or {}, "schema") or 0
        if version > SCHEMA_VERSION:
            raise LedgerError(
                f"the ledger table {self.name!r} was written by a newer auditor (schema {version}): upgrade this one"
            )
        self._declared = version >= _UNSHARDED
        self.sharded = version == SCHEMA_VERSION or (version == 0 and await self._is_empty())

    async def _is_empty(self) -> bool:
        """True if the table has no item. False also without permission to scan it: it might then be an old one."""
        try:
            answer = await self._call("Scan", TableName=self.name, Limit=1, ConsistentRead=True)
        except LedgerError as error:
            if not is_denied(error):
                raise
            return False
        return not answer["Items"]

    async def _declare(self) -> None:
        """Write the schema version into a table that has none, before this process writes its first item."""
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
    """True if a retry may succeed, although the SDK has made six attempts. A lost connection does not count: six
    attempts in a row failed.
    """
    if failure.code == _CANCELLED:
        return _PASSING.search(failure.message) is not None
    return failure.code in _TRANSIENT or is_throttle(failure) or failure.status == 500


def _refused(failure: CallFailed) -> list[int]:
    """Return the indexes of a transaction's changes whose conditions did not hold. They are read from the end of the
    message, which lists a reason for each change (DynamoDB API, TransactionCanceledException).
    """
    reasons = failure.message.rpartition("[")[2].rstrip("]").split(", ")
    return [index for index, reason in enumerate(reasons) if reason == "ConditionalCheckFailed"]


async def in_order(items: Iterable[T], group: Callable[[T], Hashable], call: Callable[[T], Awaitable[R]]) -> list[R]:
    """Call `call` for each item, many at once, and return the results in the order of the items. Items with the same
    `group` are called one after the other.
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
    """Return the error for a failed call: one sentence that names the table and the fix."""
    name, action = f"the ledger table {table!r} in {region}", failure.action
    if failure.code == "ValidationException":
        return LedgerError(f"{name} refuses {action} (ValidationException): its keys must be pk and sk, strings")
    absent = "make it (pk and sk, strings), or fix --ledger and --region"
    kind = LedgerReadOnlyError if failure.code in DENIED and action in _WRITES else LedgerError
    return kind(explain(name, failure, allow=f"dynamodb:{action}", absent=absent))


def is_denied(error: LedgerError) -> bool:
    """True if the error says that the role lacks the permission for a call."""
    return isinstance(error.__cause__, CallFailed) and error.__cause__.code in DENIED
