"""Commands on a whole ledger: go through it with a progress line, and print what was counted."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar

from auditor.aio.stop import Stop
from auditor.cli import signals
from auditor.cli.options import check_needed, settings_of
from auditor.cli.output import first_word, print_json
from auditor.cli.progress import make_progress, showing
from auditor.cli.signals import stop_on_signals
from auditor.config.resources import check_ledger, ledger_of
from auditor.config.settings import Settings
from auditor.errors import UsageError
from auditor.ledger.base import Ledger
from auditor.progress import Snapshot
from auditor.text import visible

SHOWN: Final = 100
"""Largest number of faults that a command names one by one."""


class LedgerCounts(Protocol):
    """The counts of a command on a whole ledger so far. complete: True once the whole ledger was gone through."""

    complete: bool

    @property
    def objects(self) -> int:
        """The number of rows that the progress line shows."""

    @property
    def faults(self) -> int:
        """The number of rows for which the exit code is 3."""

    def document(self) -> dict[str, Any]:
        """Return the JSON object that `--format json` prints."""

    def lines(self) -> Iterator[str]:
        """Yield the lines that the table has."""


CountsT = TypeVar("CountsT", bound=LedgerCounts)


@dataclass(frozen=True, slots=True)
class WholeLedgerWork(Generic[CountsT]):
    """The work of one command. flag: its option, such as `--check`. words: what it does, for a message. doing: the same
    for the first word on stderr. counts: makes the counts, of the ledger with this name. work: does the work, adds to
    the counts, and ends soon after the stop.
    """

    flag: str
    words: str
    doing: str
    counts: Callable[[str], CountsT]
    work: Callable[[Ledger, CountsT, Stop], Awaitable[None]]

    def run(self, options: argparse.Namespace, given: str) -> int:
        """Do the work, print the counts, and return the exit code: 4 if the ledger was not gone through to its end,
        else 3 for a fault. given: the ledger that the option names; "" for that of the settings.
        """
        if options.target is not None:
            raise UsageError(f"{self.flag} {self.words}: leave the key out, or leave {self.flag} out")
        options.ledger = given or options.ledger
        settings = settings_of(options)
        check_needed(settings, "ledger")
        check_ledger(settings)
        first_word(f"{self.doing} the ledger {visible(settings.ledger or '')}")
        found = signals.run(self._counted(settings))
        if options.format == "json":
            print_json(found.document())
        else:
            sys.stdout.write("".join(f"{line}\n" for line in found.lines()))
        if not found.complete:
            return 4
        return 3 if found.faults else 0

    async def _counted(self, settings: Settings) -> CountsT:
        name = settings.ledger or ""
        found, stop, began = self.counts(name), Stop(), time.monotonic()
        stop_on_signals(stop)

        def snapshot() -> Snapshot:
            return Snapshot(what=visible(name), objects=found.objects, seconds=time.monotonic() - began)

        with closing(make_progress()) as progress:
            async with showing(progress, snapshot, ends=False), ledger_of(settings) as ledger:
                await self.work(ledger, found, stop)
        return found
