"""The command `auditor ledger`: show the ledger's record of one key, or check or repair a whole ledger.

`--check` reads every row and history line, and tells which are damaged. `--repair` first writes the rows anew that the
history stands for.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from typing import Any, Final

from msgspec import Struct, field

from auditor.aio.stop import Stop
from auditor.cli import signals
from auditor.cli.command_frame import CommandFrame, whole_key
from auditor.cli.flags import Flags
from auditor.cli.progress import counting, shown
from auditor.config.resources import ledger_of
from auditor.config.settings import Settings
from auditor.errors import RunError, UsageError
from auditor.ledger.base import DAMAGED, SOUND, Checked, Event, KeyRecord, Ledger, Soundness
from auditor.model.target import Target
from auditor.offline import key_history as evidence
from auditor.text import counted, healed_rows, visible

SHOWN: Final = 100
"""Largest number of damaged rows and lines that a command names one by one."""
_KINDS: Final = ("row", "line")
_STATES: Final = (SOUND, DAMAGED)


def declare_ledger(flags: Flags) -> None:
    """Declare the flags of `auditor ledger`.

    auditor ledger s3://my-bucket/a.tif --ledger sqlite:digests.db
    auditor ledger --check --ledger sqlite:digests.db
    auditor ledger --repair sqlite:digests.db
    """
    flags.add("target s3://BUCKET/KEY", "the whole key", nargs="?")
    check = "check the seals of all digests and history lines of this ledger (--ledger); exit 3 if one is damaged"
    repair = "restore each damaged digest of this ledger from an intact history line; then check the ledger"
    with flags.either():
        flags.add("--check LEDGER", check, nargs="?", const="")
        flags.add("--repair LEDGER", repair, nargs="?", const="")
    flags.ledger_only()
    flags.form()


def run_ledger(options: argparse.Namespace) -> int:
    """Print the record and history of one key, or check or repair the whole ledger, and return the exit code."""
    for given, flag in ((options.repair, "--repair"), (options.check, "--check")):
        if given is not None:
            return _whole(options, given, flag)
    frame = CommandFrame(options, "ledger")
    if options.target is None:
        raise UsageError("no key is given: write s3://BUCKET/KEY, or --check or --repair for the whole ledger")
    target = whole_key(options.target)
    frame.ask_ledger()
    subject, history = signals.run(_ask(frame.settings, target))
    if subject is None and not history:
        raise RunError(f"the ledger knows nothing of {visible(target.uri)}: give the whole key, exactly as it is")
    document = evidence.as_json(target.bucket, target.prefix, subject, history)
    frame.print(document, lambda: evidence.as_table(target.uri, subject, history))
    return 0


async def _ask(settings: Settings, target: Target) -> tuple[KeyRecord | None, list[Event]]:
    async with ledger_of(settings) as ledger:
        return await ledger.subject(target.bucket, target.prefix), await ledger.history(target.bucket, target.prefix)


def _whole(options: argparse.Namespace, given: str, flag: str) -> int:
    """Check or repair the ledger, print the counts, and return the exit code: 4 if the ledger was not gone through to
    its end, else 3 for damage. given: the ledger that the flag names; "" for that of the settings.
    """
    repairs = flag == "--repair"
    if options.target is not None:
        doing = "repairs" if repairs else "checks"
        raise UsageError(f"{flag} {doing} the whole ledger: leave the key out, or leave {flag} out")
    options.ledger = given or options.ledger
    frame = CommandFrame(options, "ledger")
    frame.ask_ledger("repairing" if repairs else "checking")
    found = signals.run(_counted(frame.settings, repairs=repairs))
    frame.print_lines(found.document(), found.lines())
    if not found.complete:
        return 4
    return 3 if found.faults else 0


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
            yield "; ".join(healed_rows(self.healed)) or "no row was rewritten"
        for kind in _KINDS:
            states = ", ".join(f"{self.counts[kind, state]:,} {state}" for state in _STATES)
            yield f"{counted(sum(self.counts[kind, state] for state in _STATES), kind)}: {states}"
        for one in self.damage:
            yield f"  damaged {one.kind}: {visible(f's3://{one.bucket}/{one.key}')}: {visible(one.words)}"
        if self.faults > len(self.damage):
            yield f"  and {self.faults - len(self.damage):,} more"
        if self.faults and self.healed is None:
            yield "`auditor ledger --repair` rewrites each damaged row that a sound history line has"
        if self.faults:
            rest = "restore the ledger" if self.healed is not None else "for all other damage, restore the ledger"
            yield f"{rest} from a copy: its records of these keys are not reliable"
        if not self.complete:
            yield "complete: NO; the rest was not checked"


async def _counted(settings: Settings, *, repairs: bool) -> LedgerCheckCounts:
    found, stop = LedgerCheckCounts(settings.ledger or ""), signals.stop_on_signals()
    async with shown(counting(visible(found.ledger), found.counts.total)), ledger_of(settings) as ledger:
        if repairs:
            found.healed = 0
            await _go_through(ledger, found, stop, repairs=True)
        if not stop:
            await _go_through(ledger, found, stop, repairs=False)
    return found


async def _go_through(ledger: Ledger, counts: LedgerCheckCounts, stop: Stop, *, repairs: bool) -> None:
    """Read the whole ledger. repairs: True to heal the keys with damaged rows, False to count all rows and lines."""
    async with aclosing(ledger.checked()) as parts:
        async for part in parts:
            if repairs:
                counts.healed = (counts.healed or 0) + await _healed(ledger, part)
            else:
                counts.add(part)
            if stop:
                return
    counts.complete = not repairs


async def _healed(ledger: Ledger, part: Sequence[Checked]) -> int:
    """Heal the keys of these damaged rows, and return the number of rows that are written anew."""
    damaged = dict.fromkeys((one.bucket, one.key) for one in part if one.kind == "row" and one.state == DAMAGED)
    buckets = dict.fromkeys(bucket for bucket, _ in damaged)
    return sum([await ledger.heal(one, [key for bucket, key in damaged if bucket == one]) for one in buckets])
