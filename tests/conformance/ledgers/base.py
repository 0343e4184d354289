"""The tools of the ledger suite: how a check opens a ledger, and samples."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from functools import wraps
from typing import Final, Protocol

from auditor.ledger.base import Entry, KeyRecord, Ledger, Notice
from auditor.model.object import ObjectRef

SHA: Final = "aa" * 32
OTHER: Final = "bb" * 32
MD5: Final = "cc" * 16
ENTRY: Final = Entry(
    bucket="bucket",
    key="a/key",
    version_id=None,
    etag="etag",
    size=5,
    digests={"sha256": SHA},
    hashed_at="2026-01-02T03:04:05Z",
)
KEY: Final = ENTRY.key
REF: Final = ObjectRef("a/key", "etag", 5, "2026-01-01T00:00:00Z")
NOTICE: Final = Notice(
    key=KEY, sequencer="0055AED6DCD90281E5", deleted=False, at="2026-01-01T00:00:00Z", etag="etag", size=5
)
ODD_KEYS: Final = [
    " ",
    "a+b %41?x#y",
    "naïve",
    "nai\u0308ve",
    "\N{PILE OF POO}" * 256,
    "k" * 1024,
    "new\nline\r\ttab",
    "nul\0inside",
    "nul\0",
    "nul",
    "\x01\x7f\ufffe",
    "/leading//double/../up\\",
    "trailing ",
    "'\"<b>&;--",
    "=cmd()",
]


class OpenLedger(Protocol):
    """Opens the same ledger, empty at first, each time it is called. clock: returns the seconds since the epoch."""

    def __call__(self, clock: Callable[[], float] = ...) -> AbstractAsyncContextManager[Ledger]: ...


LedgerCheck = Callable[[OpenLedger], Awaitable[None]]
"""Checks one promise of a ledger; raises AssertionError if the ledger breaks the promise."""


CHECKS: Final[list[LedgerCheck]] = []
"""The checks of all modules, in the order of their definitions."""


def check(one: LedgerCheck) -> LedgerCheck:
    """Add a check to the suite, and return it."""
    CHECKS.append(one)
    return one


def opened(one: Callable[[Ledger], Awaitable[None]]) -> LedgerCheck:
    """Add to the suite, and return, a check that opens the ledger once and runs `one` on it."""

    @wraps(one)
    async def run(opener: OpenLedger) -> None:
        async with opener() as ledger:
            await one(ledger)

    return check(run)


@contextmanager
def raises(kind: type[Exception], pattern: str = "") -> Iterator[None]:
    """Raise AssertionError unless the `with` block raises such an error, in whose text the pattern is found."""
    text = None
    try:
        yield
    except kind as error:
        text = str(error)
    assert text is not None, f"{kind.__name__} was not raised"
    assert re.search(pattern, text), f"{text} does not match {pattern!r}"


async def lines(ledger: Ledger, key: str = KEY) -> list[tuple[str, str, dict[str, str]]]:
    """Return the kind, time and detail of each line of the key's history."""
    return [(one.what, one.at, dict(one.detail)) for one in await ledger.history("bucket", key)]


async def subject(ledger: Ledger, key: str = KEY) -> KeyRecord:
    found = await ledger.subject("bucket", key)
    assert found is not None
    return found


async def all_subjects(ledger: Ledger, prefix: str = "") -> list[KeyRecord]:
    return [one async for one in ledger.subjects("bucket", prefix)]
