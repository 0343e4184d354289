"""Send the calls of one DynamoDB table: with retries, and with errors that explain in one sentence."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Any, Final

from auditor.aio.backoff import backoff
from auditor.aws.client import ThreadedClient
from auditor.aws.failures import DENIED, explain, is_throttle
from auditor.errors import CallFailed, LedgerError, LedgerReadOnlyError
from auditor.ledger.dynamodb.items import Item

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


class ConditionFailed(Exception):  # noqa: N818 - a condition that does not hold is an answer, no error
    """Raised if DynamoDB refuses a write, because a condition of the write does not hold."""


class TableCalls:
    """Sends calls for one table, at most THREADS of them at a time."""

    def __init__(self, name: str, client: ThreadedClient, sleep: Callable[[float], Awaitable[None]]) -> None:
        self.name = name
        self._client = client
        self._sleep = sleep
        self._permits = asyncio.Semaphore(THREADS)

    async def send(self, operation: str, **arguments: Any) -> dict[str, Any]:
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
            await self.pause(attempt)
        raise AssertionError("the last attempt returned or raised")

    async def get_batch(self, keys: Sequence[dict[str, Any]], *, consistent: bool) -> list[Item]:
        """Return the items with these keys, at most BATCH of them, as they are stored. A key without an item is left
        out.

        Keys that DynamoDB leaves unprocessed are asked for again, after pauses that grow.
        """
        items: list[Item] = []
        wanted: dict[str, Any] = {"Keys": keys, "ConsistentRead": consistent}
        for attempt in range(ATTEMPTS):
            answer = await self.send("BatchGetItem", RequestItems={self.name: wanted})
            # If the request names the table by its ARN, the answer may name it by its name.
            items += [item for found in answer["Responses"].values() for item in found]
            keys = [key for left in answer.get("UnprocessedKeys", {}).values() for key in left["Keys"]]
            if not keys:
                return items
            wanted = wanted | {"Keys": keys}
            await self.pause(attempt)
        raise LedgerError(
            f"the ledger table {self.name!r} left {len(wanted['Keys'])} reads unprocessed after {ATTEMPTS} attempts:"
            " raise its read capacity or make it on-demand"
        )

    async def pages(
        self, operation: str, *, largest: int | None = None, **arguments: Any
    ) -> AsyncGenerator[list[Item], None]:
        """Yield the items of a Query or a Scan as they are stored, page by page. A page has at most 1 MB.

        largest: up to which the argument Limit grows; None if it stays. arguments: of the call, but the table's name.
        """
        while True:
            answer = await self.send(operation, TableName=self.name, **arguments)
            yield answer["Items"]
            if not answer.get("LastEvaluatedKey"):
                return
            arguments["ExclusiveStartKey"] = answer["LastEvaluatedKey"]
            if largest is not None:
                arguments["Limit"] = min(_GROWTH * arguments["Limit"], largest)

    async def pause(self, attempt: int) -> None:
        """Wait before the next attempt. attempt: number of attempts so far."""
        await self._sleep(backoff(attempt, 0.05, 5.0))


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
    absent = "make it (pk and sk, strings), or fix --ledger and --region"
    kind = LedgerReadOnlyError if failure.code in DENIED and action in _WRITES else LedgerError
    return kind(explain(name, failure, allow=f"dynamodb:{action}", absent=absent))
