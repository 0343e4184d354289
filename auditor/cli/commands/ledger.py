"""The command `auditor ledger`: show the ledger's record of one key, check a whole ledger for damage, or shard it."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import aclosing, closing
from dataclasses import dataclass, field
from typing import Any, Final

from auditor.aio.stop import Stop
from auditor.cli import sharding, signals
from auditor.cli.options import check_needed, settings_of
from auditor.cli.output import first_word, print_json
from auditor.cli.progress import make_progress, showing
from auditor.cli.signals import stop_on_signals
from auditor.config.resources import check_ledger, ledger_of
from auditor.config.settings import Settings
from auditor.errors import RunError, UsageError
from auditor.ledger.base import DAMAGED, SOUND, UNSEALED, Checked, Event, KeyRecord, Soundness
from auditor.model.target import Target, parse_target
from auditor.progress import Snapshot
from auditor.reports import key_history as evidence
from auditor.text import counted, visible


def run(options: argparse.Namespace) -> int:
    if options.shard is not None:
        return sharding.run(options)
    if options.check is not None:
        return _check(options)
    settings = settings_of(options)
    check_needed(settings, "ledger")
    if options.target is None:
        raise UsageError("no key is named: write s3://BUCKET/KEY, or --check or --shard for the whole ledger")
    target = parse_target(options.target)
    if not target.prefix:
        raise UsageError(f"{target.uri} names no key: write s3://BUCKET/KEY, the whole key")
    check_ledger(settings)
    first_word(f"asking the ledger {visible(settings.ledger or '')}")
    subject, history = signals.run(_ask(settings, target))
    if subject is None and not history:
        raise RunError(f"the ledger knows nothing of {visible(target.uri)}: give the whole key, to the letter")
    if options.format == "json":
        print_json(evidence.as_json(target.bucket, target.prefix, subject, history))
    else:
        sys.stdout.write(evidence.as_table(target.uri, subject, history))
    return 0


async def _ask(settings: Settings, target: Target) -> tuple[KeyRecord | None, list[Event]]:
    async with ledger_of(settings) as ledger:
        return await ledger.subject(target.bucket, target.prefix), await ledger.history(target.bucket, target.prefix)


def _check(options: argparse.Namespace) -> int:
    if options.target is not None:
        raise UsageError("--check checks the whole ledger: leave the key out, or leave --check out")
    options.ledger = options.check or options.ledger
    settings = settings_of(options)
    check_needed(settings, "ledger")
    check_ledger(settings)
    first_word(f"checking the ledger {visible(settings.ledger or '')}")
    found = signals.run(_checked(settings))
    if options.format == "json":
        print_json(found.document())
    else:
        sys.stdout.write("".join(f"{line}\n" for line in found.lines()))
    if not found.complete:
        return 4
    return 3 if found.damaged else 0


async def _checked(settings: Settings) -> LedgerCheckCounts:
    found, stop, began = LedgerCheckCounts(settings.ledger or ""), Stop(), time.monotonic()
    stop_on_signals(stop)

    def snapshot() -> Snapshot:
        seconds = time.monotonic() - began
        return Snapshot(what=visible(found.ledger), objects=found.counts.total(), seconds=seconds)

    with closing(make_progress()) as progress:
        async with (
            showing(progress, snapshot, ends=False),
            ledger_of(settings) as ledger,
            aclosing(ledger.checked()) as parts,
        ):
            async for part in parts:
                found.add(part)
                if stop:
                    return found
    found.complete = True
    return found


@dataclass(slots=True)
class LedgerCheckCounts:
    """The counts of a check of a ledger. damage: the first damaged rows and history lines, at most _SHOWN of them."""

    ledger: str
    counts: Counter[tuple[str, Soundness]] = field(default_factory=Counter)
    damage: list[Checked] = field(default_factory=list)
    complete: bool = False

    @property
    def damaged(self) -> int:
        return sum(self.counts[kind, DAMAGED] for kind in _KINDS)

    def add(self, part: Sequence[Checked]) -> None:
        for one in part:
            self.counts[one.kind, one.state] += 1
            if one.state == DAMAGED and len(self.damage) < _SHOWN:
                self.damage.append(one)

    def document(self) -> dict[str, Any]:
        """Return the JSON object that `--format json` prints."""
        kinds = {f"{kind}s": {state: self.counts[kind, state] for state in _STATES} for kind in _KINDS}
        damage = [{"bucket": one.bucket, "key": one.key, "kind": one.kind, "words": one.words} for one in self.damage]
        return {"ledger": self.ledger, "complete": self.complete, **kinds, "damage": damage}

    def lines(self) -> Iterator[str]:
        for kind in _KINDS:
            states = ", ".join(f"{self.counts[kind, state]:,} {state}" for state in _STATES)
            old = " (an earlier version wrote them)" if self.counts[kind, UNSEALED] else ""
            yield f"{counted(sum(self.counts[kind, state] for state in _STATES), kind)}: {states}{old}"
        for one in self.damage:
            yield f"  damaged {one.kind}: {visible(f's3://{one.bucket}/{one.key}')}: {visible(one.words)}"
        if self.damaged > len(self.damage):
            yield f"  and {self.damaged - len(self.damage):,} more"
        if self.damaged:
            yield "restore the ledger from a copy: it says nothing of these keys that can be relied on"
        if not self.complete:
            yield "complete: NO; the rest was not checked"


_KINDS: Final = ("row", "line")
_STATES: Final = (SOUND, DAMAGED, UNSEALED)
_SHOWN: Final = 100
