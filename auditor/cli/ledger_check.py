"""`auditor ledger --check` and `--repair`: read every row and history line of a ledger, and tell which are damaged.

`--repair` first writes the rows anew that the history stands for.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing
from typing import Any, Final

from msgspec import Struct, field

from auditor.aio.stop import Stop
from auditor.cli import signals
from auditor.cli.options import settings_of
from auditor.cli.output import first_word, print_result
from auditor.cli.progress import counting, shown
from auditor.cli.signals import stop_on_signals
from auditor.config.resources import check_ledger, ledger_of
from auditor.config.settings import Settings
from auditor.errors import UsageError
from auditor.ledger.base import DAMAGED, SOUND, Checked, Ledger, Soundness
from auditor.text import counted, healed_rows, visible

SHOWN: Final = 100
"""Largest number of damaged rows and lines that a command names one by one."""
_KINDS: Final = ("row", "line")
_STATES: Final = (SOUND, DAMAGED)


class LedgerCheckCounts(Struct):
    """The counts of a check of a ledger. damage: the first damaged rows and history lines, at most SHOWN of them.

    healed: number of damaged rows that `--repair` has written anew; None for `--check`.
    """

    ledger: str
    counts: Counter[tuple[str, Soundness]] = field(default_factory=Counter)
    damage: list[Checked] = field(default_factory=list)
    complete: bool = False
    healed: int | None = None

    @property
    def faults(self) -> int:
        return sum(self.counts[kind, DAMAGED] for kind in _KINDS)

    def add(self, part: Sequence[Checked]) -> None:
        for one in part:
            self.counts[one.kind, one.state] += 1
            if one.state == DAMAGED and len(self.damage) < SHOWN:
                self.damage.append(one)

    def document(self) -> dict[str, Any]:
        kinds = {f"{kind}s": {state: self.counts[kind, state] for state in _STATES} for kind in _KINDS}
        damage = [{"bucket": one.bucket, "key": one.key, "kind": one.kind, "words": one.words} for one in self.damage]
        healed = {} if self.healed is None else {"healed": self.healed}
        return {"ledger": self.ledger, "complete": self.complete, **healed, **kinds, "damage": damage}

    def lines(self) -> Iterator[str]:
        if self.healed is not None:
            yield "; ".join(healed_rows(self.healed)) or "no row was written anew"
        for kind in _KINDS:
            states = ", ".join(f"{self.counts[kind, state]:,} {state}" for state in _STATES)
            yield f"{counted(sum(self.counts[kind, state] for state in _STATES), kind)}: {states}"
        for one in self.damage:
            yield f"  damaged {one.kind}: {visible(f's3://{one.bucket}/{one.key}')}: {visible(one.words)}"
        if self.faults > len(self.damage):
            yield f"  and {self.faults - len(self.damage):,} more"
        if self.faults and self.healed is None:
            yield "a row that a sound line of the history recorded: `auditor ledger --repair` writes it anew"
        if self.faults:
            rest = "restore the ledger" if self.healed is not None else "for all other damage restore the ledger"
            yield f"{rest} from a copy: what it says of these keys cannot be relied on"
        if not self.complete:
            yield "complete: NO; the rest was not checked"


async def _check(ledger: Ledger, counts: LedgerCheckCounts, stop: Stop) -> None:
    async with aclosing(ledger.checked()) as parts:
        async for part in parts:
            counts.add(part)
            if stop:
                return
    counts.complete = True


async def _repair(ledger: Ledger, counts: LedgerCheckCounts, stop: Stop) -> None:
    """Heal the keys with damaged rows, and then check the whole ledger."""
    counts.healed = 0
    async with aclosing(ledger.checked()) as parts:
        async for part in parts:
            keys: dict[str, dict[str, None]] = {}
            for one in part:
                if one.kind == "row" and one.state == DAMAGED:
                    keys.setdefault(one.bucket, {})[one.key] = None
            for bucket, damaged in keys.items():
                counts.healed += await ledger.heal(bucket, list(damaged))
            if stop:
                return
    await _check(ledger, counts, stop)


class LedgerCheck(Struct, frozen=True):
    """One of the two commands. flag: its option. words: its work, for a message. doing: the same for the first word on
    stderr. work: goes through the ledger, adds to the counts, and ends soon after the stop.
    """

    flag: str
    words: str
    doing: str
    work: Callable[[Ledger, LedgerCheckCounts, Stop], Awaitable[None]]

    def run(self, options: argparse.Namespace, given: str) -> int:
        """Do the work, print the counts, and return the exit code: 4 if the ledger was not gone through to its end,
        else 3 for damage. given: the ledger that the option names; "" for that of the settings.
        """
        if options.target is not None:
            raise UsageError(f"{self.flag} {self.words}: leave the key out, or leave {self.flag} out")
        options.ledger = given or options.ledger
        settings = settings_of(options, "ledger")
        check_ledger(settings)
        first_word(f"{self.doing} the ledger {visible(settings.ledger or '')}")
        found = signals.run(self._counted(settings))
        print_result(options.format, found.document(), lambda: "".join(f"{line}\n" for line in found.lines()))
        if not found.complete:
            return 4
        return 3 if found.faults else 0

    async def _counted(self, settings: Settings) -> LedgerCheckCounts:
        name = settings.ledger or ""
        found, stop = LedgerCheckCounts(name), stop_on_signals()
        async with shown(counting(visible(name), found.counts.total)), ledger_of(settings) as ledger:
            await self.work(ledger, found, stop)
        return found


CHECK: Final = LedgerCheck("--check", "checks the whole ledger", "checking", _check)
REPAIR: Final = LedgerCheck("--repair", "repairs the whole ledger", "repairing", _repair)
