"""Retry work during an outage of the ledger or of S3, so that the outage does not end work that can wait."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from inspect import iscoroutinefunction
from typing import Any, Final, TypeVar, cast

from msgspec import Struct, field

from auditor.aio.backoff import backoff
from auditor.aio.stop import Stop
from auditor.aws.failures import is_transient
from auditor.errors import CallFailed, DigestConflict, LeaseLostError, LedgerError, LedgerFileError
from auditor.hashing.digest.result import Failed, Hashed, Result
from auditor.hashing.queue.message import HashTask
from auditor.ledger.base import Ledger, OrderedReader
from auditor.s3.engines.base import Span
from auditor.s3.paced_reads import Reads

log = logging.getLogger(__name__)

T = TypeVar("T")
LONGEST: Final = 6 * 3600.0
"""Longest time in seconds that one piece of work waits for the ledger or S3. SQS hides a message for 12 hours in all
(SQS Developer Guide, visibility timeout); the rest of them is for the work itself."""
FIRST: Final = 1.0
"""Longest pause in seconds before the first repetition. The limit doubles for each further repetition."""
PAUSE: Final = 60.0
"""Longest pause in seconds between two repetitions: after an outage, the work continues at most this much later."""
LONGEST_UNPROVEN: Final = 600.0
"""Longest time in seconds that an object waits for S3 before S3 has sent any object of the run: it may be the bucket
that cannot be read, and not S3 that fails."""
REPEATED: Final = 60.0
"""Seconds of waiting after which the log says its reason again."""
REFUSED_ALONE: Final = 2
"""Number of times that S3 may fail at an object, with all its attempts, and then send another object. This object fails
then. Once is not enough: the outage may end between the two."""


class _Told(Struct):
    """When the log last said for what the work waits, in seconds of waiting. The work that waits longest counts."""

    at: float | None = None

    def again(self, waited: float) -> bool:
        """True if the reason is to be said now: at first, and then after each REPEATED seconds of waiting.

        waited: number of seconds that this piece of work has waited.
        """
        if self.at is not None and waited - self.at < REPEATED:
            return False
        self.at = waited
        return True

    def ended(self) -> bool:
        """Note the end of the waiting. True if its reason was said."""
        said, self.at = self.at is not None, None
        return said


class LedgerPatience(Struct, eq=False):
    """Repeats work that fails because of the ledger, until the ledger answers. All work of a process shares one
    LedgerPatience.

    Work is repeated only if work of the same kind has succeeded before. Before the first success, the cause may be a
    wrong setting. A disk that refuses the ledger's file, because it is full for example, is never waited for.
    """

    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    succeeded: set[str] = field(default_factory=set)
    told: _Told = field(default_factory=_Told)

    async def __call__(self, kind: str, work: Callable[[], Awaitable[T]], stop: Stop) -> T:
        """Do the work, repeat it while the ledger fails, and return its result.

        Raises the last LedgerError at a stop, or after LONGEST seconds. kind: a name that equal kinds of work share.
        """
        waited, failures = 0.0, 0
        while True:
            try:
                result = await work()
            except (DigestConflict, LeaseLostError, LedgerFileError):  # an answer, or a full disk: no outage
                raise
            except LedgerError as error:
                if stop or waited >= LONGEST or kind not in self.succeeded:
                    raise
                if self.told.again(waited):
                    log.warning("waiting for the ledger for at most %.0f hours: %s", LONGEST / 3600, error)
                pause = backoff(failures, FIRST, PAUSE)
                await stop.race(self.sleep(pause))
                waited, failures = waited + pause, failures + 1
            else:
                self.succeeded.add(kind)
                if self.told.ended():
                    log.warning("the ledger answers again: the work continues")
                return result


class _Patient:
    """A ledger, or a reader of one, that repeats each call until the store behind it answers. This is safe, because
    every write is idempotent.
    """

    def __init__(self, inner: Ledger | OrderedReader, patience: LedgerPatience, stop: Stop) -> None:
        self._inner = inner
        self._patience = patience
        self._stop = stop

    def in_order(self, bucket: str) -> OrderedReader:
        return cast(OrderedReader, _Patient(cast(Ledger, self._inner).in_order(bucket), self._patience, self._stop))

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)
        if not iscoroutinefunction(method):  # a generator, such as subjects(), is not repeated
            return method
        return lambda *values, **named: self._patience(name, partial(method, *values, **named), self._stop)


class S3Patience(Struct, eq=False):
    """Repeats the hashing of an object at which S3 fails, until S3 answers. All objects of a run share one S3Patience.

    S3 fails if it refuses the call for now (503), has an error of its own (500, 502, 504), or does not answer. During
    an outage it fails at each object. An object at which S3 fails although it sends another one is not waited for.
    """

    stop: Stop
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    sound: HashTask | None = None
    """An object that S3 has sent in this run."""
    told: _Told = field(default_factory=_Told)
    given_up: bool = False

    async def __call__(self, engine: Reads, hashing: Callable[[], Awaitable[Result]]) -> Result:
        """Hash an object, repeat that while S3 fails, and return the result: the last failure at a stop, or when the
        object has waited too long.
        """
        waited, failures, alone = 0.0, 0, 0
        while True:
            result = await hashing()
            if not (isinstance(result, Failed) and result.outage):
                self._note_answer(result)
                return result
            if await self._answers(engine):
                alone += 1
            else:
                longest = LONGEST_UNPROVEN if self.sound is None else LONGEST
                if self.told.again(waited):
                    log.warning("waiting for S3 for at most %.0f minutes: %s", longest / 60, result.code)
                self.given_up |= waited >= longest
            if self.stop or self.given_up or alone >= REFUSED_ALONE:
                return result
            pause = backoff(failures, FIRST, PAUSE)
            await self.stop.race(self.sleep(pause))
            waited, failures = waited + pause, failures + 1

    async def _answers(self, engine: Reads) -> bool:
        """True if S3 answers a GetObject for the first byte of an object that it has sent before."""
        if (sound := self.sound) is None:
            return False
        try:
            async with engine.get(sound.key, sound.version_id, sound.etag, Span(0, 0)):
                return True
        except CallFailed as failure:
            return not is_transient(failure)

    def _note_answer(self, result: Result) -> None:
        if isinstance(result, Hashed):
            self.sound, self.given_up = result.task, False
        if self.told.ended():
            log.warning("S3 answers again: the hashing continues")


def patient(ledger: Ledger, stop: Stop, patience: LedgerPatience | None = None) -> Ledger:
    """Return a ledger whose calls wait for the end of an outage, or for the stop.

    patience: repeats the calls, and is shared by all work of the process; None for a new one.
    """
    return cast(Ledger, _Patient(ledger, patience or LedgerPatience(), stop))
