"""Read and write the items of one DynamoDB table, by their plain names: in batches and pages, with retries, and with
errors that explain in one sentence.

A shard is one of 16 partitions of a bucket. Its sort keys begin with the object key, so that a Query reads keys in
order, without their histories. History lines and leases are stored under their plain names (items.py).
"""

from __future__ import annotations

import asyncio
import re
import time
import zlib
from collections import defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

from auditor.aio.backoff import backoff
from auditor.aio.tasks import together
from auditor.aws.client import ThreadedClient
from auditor.aws.failures import DENIED, explain, is_throttle
from auditor.errors import CallFailed, LedgerError, LedgerReadOnlyError
from auditor.ledger.dynamodb.changes import Change, key_of
from auditor.ledger.dynamodb.items import NOTICED, STATE, WHOLE_KEY, Item, Name, digest_of

SHARDS: Final = 16
"""Number of shards (partitions) of a bucket. DynamoDB allows 1,000 writes a second to one partition ("Best practices
for partition keys")."""
LONGEST_NAME: Final = 106
"""Largest number of bytes in a sort key after the object key, for the item's own name; a longer name becomes a hash."""
_LONGEST_KEY: Final = 870
"""Number of bytes after which an object key is cut, at the end of a character. Cut key, hash of the key and the longest
name together fit into the 1,024 bytes of a sort key."""
_END: Final = "\x01"
"""Marks the end of the object key in a sort key, so that a key sorts before all longer keys that begin with it."""
_ESCAPES: Final = str.maketrans({"\0": "\x01\U0010fffe", "\x01": "\x01\U0010ffff"})
"""Replacements in a sort key for U+0000 and U+0001, the two characters that do not sort after _END. Keys with
replacements sort as before."""
_CUT: Final = "\U0010fffd"
"""Stands before the hash of a cut key, after _END. It sorts after the names of all items, and before all escapes."""
_LAST_NAME: Final = "\U0010fffc"
_PARTS: Final = re.compile(f"((?:[^{_END}]+|{_END}[\U0010fffe\U0010ffff])*){_END}(?:{_CUT}.{{32}})?(.*)", re.DOTALL)

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
TRIES: Final = 10
"""Number of times that a write is begun anew, if its item has changed since it was read."""
FORMAT: Final = 1
"""Number of the table's format. One item of the table says it: the first writer to an empty table writes that item."""
_FORMAT_NAME: Final = ("-", "-")
"""Name (pk and sk) of that item. No other item has this name, because no bucket has the name "-"."""

T = TypeVar("T")
R = TypeVar("R")
Sleep = Callable[[float], Awaitable[None]]
Clock = Callable[[], float]


def partitions(bucket: str) -> list[str]:
    """Return the pk of each shard of a bucket. No other item has such a pk, because it has no slash."""
    return [f"{bucket}#{number}" for number in range(SHARDS)]


def stored_name(name: Name) -> Name:
    """Return the pk and sk under which the table stores the item with this plain name."""
    pk, sk = name
    bucket, slash, key = pk.partition("/")
    if not slash or sk < STATE:
        return name
    return _partition(bucket, key), _beginning(key) + _short(sk)


def stored_range(pk: str, first: str) -> tuple[str, str, str]:
    """Return the pk, first sk and last sk under which the table stores a key's items from one on.

    pk, first: that item's plain name. If it is a history line, the range has all history lines after it.
    """
    if first < STATE:
        return pk, first, STATE
    bucket, _, key = pk.partition("/")
    beginning = _beginning(key)
    return _partition(bucket, key), beginning + first, beginning + _LAST_NAME


def first_sort_key(prefix: str, start_after: str) -> str:
    """Return the sort key from which to read a shard for the keys that begin with `prefix` and come after
    `start_after`.
    """
    return max(_END, _head(prefix), _head(start_after) + _END)


def cut_key(name: Name) -> str | None:
    """Return the object key of an item, if the item's stored sort key has only the beginning of it; None otherwise."""
    _, slash, key = name[0].partition("/")
    return key if slash and name[1] >= STATE and _head(key) != _escaped(key) else None


def own_name(stored: Mapping[str, Any]) -> Item:
    """Return a stored item under its plain name."""
    pk = stored["pk"]["S"]
    if "/" in pk or "#" not in pk:
        return Item(stored)
    key, _, name = stored["sk"]["S"].partition(_END)
    if name[:1] >= _CUT:
        parts: Any = _PARTS.fullmatch(stored["sk"]["S"])
        key, name = parts.groups()
        whole = Item(stored).text(WHOLE_KEY)
        key = whole or key.replace("\x01\U0010fffe", "\0").replace("\x01\U0010ffff", "\x01")
    return Item(stored, pk={"S": f"{pk.partition('#')[0]}/{key}"}, sk={"S": name})


def _partition(bucket: str, key: str) -> str:
    return f"{bucket}#{zlib.crc32(key.encode('utf-8', 'surrogatepass')) % SHARDS}"


def _beginning(key: str) -> str:
    """Return the text with which the sort keys of a key's items begin: the object key, or, if the key is too long, the
    beginning of the key and its hash.
    """
    head, escaped = _head(key), _escaped(key)
    return head + _END if head == escaped else f"{head}{_END}{_CUT}{digest_of(key)[:32]}"


def _escaped(key: str) -> str:
    return key.translate(_ESCAPES) if "\0" in key or "\x01" in key else key


def _head(key: str) -> str:
    """Return the key with escapes, or only its beginning: up to the character that makes it _LONGEST_KEY bytes long, or
    longer.
    """
    escaped = _escaped(key)
    if len(escaped) * 4 <= _LONGEST_KEY or _size(escaped) <= _LONGEST_KEY:
        return escaped
    if key.isascii() and escaped == key:
        return key[:_LONGEST_KEY]
    size = 0
    for index, letter in enumerate(key):
        size += _size(_escaped(letter))
        if size >= _LONGEST_KEY:
            return _escaped(key[: index + 1])
    return escaped


def _short(sk: str) -> str:
    if _size(sk) <= LONGEST_NAME:
        return sk
    return f"{NOTICED if sk.startswith(NOTICED) else ''}sha256:{digest_of(sk)}"


def _size(value: str) -> int:
    return len(value.encode("utf-8", "surrogatepass"))


class ConditionFailed(Exception):  # noqa: N818 - a condition that does not hold is an answer, no error
    """Raised if DynamoDB refuses a write, because a condition of the write does not hold."""


class Table:
    """One DynamoDB table, called by at most THREADS calls at a time.

    Callers use the plain names of items (items.py). This class converts them to the stored ones (stored_name()).
    """

    def __init__(self, name: str, client: ThreadedClient, sleep: Sleep, clock: Clock = time.time) -> None:
        self.name = name
        self._client = client
        self._sleep = sleep
        self._clock = clock
        self._permits = asyncio.Semaphore(THREADS)
        self._place = 0
        self._begun, self._beginning = True, asyncio.Lock()  # until probe() finds an empty table

    async def probe(self) -> None:
        """Check the table's format at the start of a run, so that a missing table or permission shows now, not later.

        Raises LedgerError, also if the table has items of another format, or of another program. An empty table passes.
        """
        self._begun = await self._is_said()
        # If another process begins the table in between, its item is there at the second look.
        if not self._begun and await self._has_items() and not await self._is_said():
            raise self._refused()

    async def _is_said(self) -> bool:
        """Return True if the table's item has the number of this format, False if there is no such item.

        Raises LedgerError for another number.
        """
        item = await self.get(_FORMAT_NAME)
        if item is None:
            return False
        found = item.number("format")
        if found is not None and found > FORMAT:
            raise LedgerError(
                f"the ledger table {self.name!r} was written by a newer auditor (format {found}): upgrade this one"
            )
        if found != FORMAT:
            raise self._refused()
        return True

    async def _has_items(self) -> bool:
        answer = await self._send("Scan", TableName=self.name, Limit=1, ConsistentRead=True)
        return bool(answer["Items"])

    def _refused(self) -> LedgerError:
        return LedgerError(
            f"the ledger table {self.name!r} was written by a development version of the auditor or by another"
            " program: create a new table and name it with --ledger dynamodb:TABLE or the stack's parameter ledger"
        )

    async def _begin(self) -> None:
        """Write the format into a table that was empty. Call this before each write. Raises LedgerError."""
        if not self._begun:
            async with self._beginning:
                if not self._begun:  # by another task meanwhile
                    await self._write_format()

    async def _write_format(self) -> None:
        change = Change(_FORMAT_NAME).put("format", FORMAT).when("pk", None)
        try:
            await self._send("UpdateItem", TableName=self.name, **change.arguments())
            self._begun = True
        except ConditionFailed:  # another process was first
            self._begun = await self._is_said()

    def place(self) -> int:
        """Return a number that orders the writes of the ledger: microseconds since the epoch, but larger with each
        call.
        """
        self._place = max(self._place + 1, int(self._clock() * 1_000_000))
        return self._place

    async def get(self, name: Name) -> Item | None:
        key = key_of(stored_name(name))
        answer = await self._send("GetItem", TableName=self.name, Key=key, ConsistentRead=True)
        return own_name(answer["Item"]) if answer.get("Item") else None

    async def get_many(self, names: Iterable[Name], *, consistent: bool = False) -> dict[Name, Item]:
        """Return the items with these names, by name. A name without an item is left out.

        consistent: True to see the newest writes.
        """
        wanted = {stored_name(name): name for name in names}
        keys = [key_of(stored) for stored in wanted]
        found: dict[Name, Item] = {}
        for start in range(0, len(keys), BATCH):
            items = await self._get_batch(keys[start : start + BATCH], consistent=consistent)
            found.update({wanted[item["pk"]["S"], item["sk"]["S"]]: own_name(item) for item in items})
        return found

    async def _get_batch(self, keys: Sequence[dict[str, Any]], *, consistent: bool) -> list[dict[str, Any]]:
        """Return the items with these keys, at most BATCH of them, as they are stored. A key without an item is left
        out.

        Keys that DynamoDB leaves unprocessed are asked for again, after pauses that grow.
        """
        items: list[dict[str, Any]] = []
        wanted: dict[str, Any] = {"Keys": keys, "ConsistentRead": consistent}
        for attempt in range(ATTEMPTS):
            answer = await self._send("BatchGetItem", RequestItems={self.name: wanted})
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
            answer = await self._send(operation, TableName=self.name, **arguments)
            yield [own_name(item) for item in answer["Items"]]
            if not answer.get("LastEvaluatedKey"):
                return
            arguments["ExclusiveStartKey"] = answer["LastEvaluatedKey"]
            if largest is not None:
                arguments["Limit"] = min(_GROWTH * arguments["Limit"], largest)

    async def query(self, pk: str, first: str, *, consistent: bool = True) -> list[Item]:
        """Return the items with this pk whose sk is `first`, or comes after it. consistent: True to see the newest
        writes.
        """
        pk, first, last = stored_range(pk, first)
        values = {":pk": {"S": pk}, ":first": {"S": first}, ":last": {"S": last}}
        condition = "pk = :pk AND sk BETWEEN :first AND :last"
        reading = self.pages(
            "Query", KeyConditionExpression=condition, ExpressionAttributeValues=values, ConsistentRead=consistent
        )
        return [item async for page in reading for item in page]

    async def update(self, change: Change, *, returned: str = "NONE") -> Item:
        """Make one change by UpdateItem. Raises ConditionFailed if its condition does not hold.

        returned: ReturnValues of UpdateItem, which choose the attributes in the answer.
        """
        await self._begin()
        answer = await self._send("UpdateItem", TableName=self.name, ReturnValues=returned, **_arguments(change))
        return Item(answer.get("Attributes", {}))

    async def attempt(self, change: Change) -> bool:
        """Make one change; return False if its condition does not hold."""
        try:
            await self.update(change)
        except ConditionFailed:
            return False
        return True

    async def update_all(self, changes: Sequence[Change]) -> None:
        """Make all changes in one transaction. Raises ConditionFailed if one of their conditions does not hold."""
        await self._begin()
        updates = [{"Update": {"TableName": self.name, **_arguments(change)}} for change in changes]
        await self._send("TransactWriteItems", TransactItems=updates)

    async def _send(self, operation: str, **arguments: Any) -> dict[str, Any]:
        """Send a call, and return its answer. The table's name must be among the arguments.

        Raises ConditionFailed if a condition of a write does not hold, and LedgerError if the call fails.
        """
        for attempt in range(1, ATTEMPTS + 1):
            try:
                async with self._permits:
                    return await self._client.call(operation, **arguments)
            except CallFailed as failure:
                if _is_refused(failure):
                    raise ConditionFailed from failure
                if attempt == ATTEMPTS or not _is_transient(failure):
                    raise explained(self.name, self._client.region, failure) from failure
            await self._pause(attempt)
        raise AssertionError("the last attempt returned or raised")

    async def _pause(self, attempt: int) -> None:
        """Wait before the next attempt. attempt: number of attempts so far."""
        await self._sleep(backoff(attempt, 0.05, 5.0))


def _arguments(change: Change) -> dict[str, Any]:
    change.once(WHOLE_KEY, cut_key(change.name))
    return change.arguments() | {"Key": key_of(stored_name(change.name))}


def changing(table: Table) -> LedgerError:
    """Return the error for a table whose items change at each attempt to write them."""
    return LedgerError(
        f"the ledger table {table.name!r} changes while it is being written: stop whatever deletes its items"
    )


def _is_transient(failure: CallFailed) -> bool:
    """True if a retry may succeed, although the SDK has made six attempts already.

    A lost connection does not count as transient: it has failed six times in a row.
    """
    if failure.code == _CANCELLED:
        return _PASSING.search(failure.message) is not None
    return failure.code in _TRANSIENT or is_throttle(failure) or failure.status == 500


def _is_refused(failure: CallFailed) -> bool:
    """True if a condition of the write did not hold.

    For a transaction, DynamoDB's message lists a reason for each change (DynamoDB API, TransactionCanceledException).
    """
    return failure.code == _REFUSED or (failure.code == _CANCELLED and "ConditionalCheckFailed" in failure.message)


def explained(table: str, region: str, failure: CallFailed) -> LedgerError:
    """Return the LedgerError for a failed call: one sentence that names the table and the fix."""
    name, action = f"the ledger table {table!r} in {region}", failure.action
    if failure.code == "ValidationException":
        return LedgerError(f"{name} refuses {action} (ValidationException): its keys must be pk and sk, strings")
    absent = "create it (pk and sk, strings), or fix --ledger and --region"
    kind = LedgerReadOnlyError if failure.code in DENIED and action in _WRITES else LedgerError
    return kind(explain(name, failure, allow=f"dynamodb:{action}", absent=absent))


async def in_order(items: Iterable[T], group: Callable[[T], Hashable], call: Callable[[T], Awaitable[R]]) -> list[R]:
    """Call `call` for each item, many at the same time, and return the results in the order of the items.

    Items for which `group` returns the same value are called one after the other.
    """
    groups: dict[Hashable, list[tuple[int, T]]] = defaultdict(list)
    for place, one in enumerate(items):
        groups[group(one)].append((place, one))
    waiting = iter(groups.values())
    answers: dict[int, R] = {}

    async def work() -> None:
        for members in waiting:
            for index, item in members:
                answers[index] = await call(item)

    await together(work() for _ in range(min(THREADS, len(groups))))
    return [answers[index] for index in range(len(answers))]
