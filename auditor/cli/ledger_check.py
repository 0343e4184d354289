"""`auditor ledger --check` and `--repair`: read every row and history line of a ledger, and tell which are damaged.

`--repair` first writes the rows anew that the history stands for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Final

from auditor.aio.stop import Stop
from auditor.cli.whole_ledger import SHOWN, WholeLedgerWork
from auditor.ledger.base import DAMAGED, SOUND, UNSEALED, Checked, Ledger, Soundness
from auditor.text import counted, healed_rows, visible

_KINDS: Final = ("row", "line")
_STATES: Final = (SOUND, DAMAGED, UNSEALED)


@dataclass(slots=True)
class LedgerCheckCounts:
    """The counts of a check of a ledger. damage: the first damaged rows and history lines, at most SHOWN of them.

    healed: number of damaged rows that `--repair` has written anew; None for `--check`.
    """

    ledger: str
    counts: Counter[tuple[str, Soundness]] = field(default_factory=Counter)
    damage: list[Checked] = field(default_factory=list)
    complete: bool = False
    healed: int | None = None

    @property
    def objects(self) -> int:
        return self.counts.total()

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
            old = " (an earlier version wrote them)" if self.counts[kind, UNSEALED] else ""
            yield f"{counted(sum(self.counts[kind, state] for state in _STATES), kind)}: {states}{old}"
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


CHECK: Final = WholeLedgerWork("--check", "checks the whole ledger", "checking", LedgerCheckCounts, _check)
REPAIR: Final = WholeLedgerWork("--repair", "repairs the whole ledger", "repairing", LedgerCheckCounts, _repair)
