"""Retry work during an outage of the ledger, so that the outage does not end work that can wait."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from inspect import iscoroutinefunction
from typing import Any, Final, TypeVar, cast

from auditor.aio.backoff import backoff
from auditor.aio.stop import Stop
from auditor.errors import DigestConflict, LeaseLostError, LedgerError
from auditor.ledger.base import Ledger
from auditor.ledger.ordered import OrderedReader
from auditor.model.object import AnyVersion

log = logging.getLogger(__name__)

T = TypeVar("T")
LONGEST: Final = 6 * 3600.0
"""Longest time in seconds that one piece of work waits for the ledger. SQS hides a message for 12 hours in all (SQS
Developer Guide, visibility timeout); the rest of them is for the work itself."""
FIRST: Final = 1.0
"""Longest pause in seconds before the first repetition. The limit doubles for each further repetition."""
PAUSE: Final = 60.0
"""Longest pause in seconds between two repetitions: after an outage, the work goes on at most this much later."""


class LedgerPatience:
    """Repeats work that fails because of the ledger, until the ledger answers. All work of a process shares one
    LedgerPatience.

    Work is repeated only if work of the same kind has succeeded before. Before the first success, the cause may be a
    wrong setting.
    """

    def __init__(self, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        self._sleep = sleep
        self._succeeded: set[str] = set()
        self._refused = False

    async def __call__(self, kind: str, work: Callable[[], Awaitable[T]], stop: Stop) -> T:
        """Do the work, repeat it while the ledger fails, and return its result.

        Raises the last LedgerError at a stop, or after LONGEST seconds. kind: a name that equal kinds of work share.
        """
        waited, failures = 0.0, 0
        while True:
            try:
                result = await work()
            except (DigestConflict, LeaseLostError):  # the ledger answered, it did not refuse
                raise
            except LedgerError as error:
                if stop or waited >= LONGEST or kind not in self._succeeded:
                    raise
                self._tell_refusal(error)
                pause = backoff(failures, FIRST, PAUSE)
                await stop.race(self._sleep(pause))
                waited, failures = waited + pause, failures + 1
            else:
                self._tell_answer(kind)
                return result

    def _tell_refusal(self, error: LedgerError) -> None:
        if not self._refused:
            self._refused = True
            log.warning("the work waits for the ledger, for %.0f hours at most: %s", LONGEST / 3600, error)

    def _tell_answer(self, kind: str) -> None:
        self._succeeded.add(kind)
        if self._refused:
            self._refused = False
            log.warning("the ledger answers again: the work goes on")


class _PatientLedger:
    """A ledger that repeats each call until the store behind it answers. This is safe, because every write is
    idempotent.
    """

    def __init__(self, ledger: Ledger, patience: LedgerPatience, stop: Stop) -> None:
        self._ledger = ledger
        self._patience = patience
        self._stop = stop

    def in_order(self, bucket: str) -> OrderedReader:
        return _PatientReader(self._ledger.in_order(bucket), self._patience, self._stop)

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._ledger, name)
        if not iscoroutinefunction(method):  # a generator, such as subjects(), is not repeated
            return method
        return lambda *values, **named: self._patience(name, partial(method, *values, **named), self._stop)


class _PatientReader:
    """A reader of a ledger that repeats each look-up until the ledger answers."""

    def __init__(self, reader: OrderedReader, patience: LedgerPatience, stop: Stop) -> None:
        self._reader = reader
        self._patience = patience
        self._stop = stop

    async def known(self, refs: Sequence[AnyVersion], algorithms: Sequence[str]) -> list[Mapping[str, str]]:
        return await self._patience("known", partial(self._reader.known, refs, algorithms), self._stop)

    async def close(self) -> None:
        await self._reader.close()


def patient(ledger: Ledger, stop: Stop, patience: LedgerPatience | None = None) -> Ledger:
    """Return a ledger whose calls wait for the end of an outage, or for the stop.

    patience: repeats the calls, and is shared by all work of the process; None for a new one.
    """
    return cast(Ledger, _PatientLedger(ledger, patience or LedgerPatience(), stop))
