"""`auditor ledger --check`: read every row and history line of a ledger, and tell which are damaged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Final

from auditor.aio.stop import Stop
from auditor.cli.whole_ledger import SHOWN, WholeLedgerWork
from auditor.ledger.base import DAMAGED, SOUND, UNSEALED, Checked, Ledger, Soundness
from auditor.text import counted, visible

_KINDS: Final = ("row", "line")
_STATES: Final = (SOUND, DAMAGED, UNSEALED)


@dataclass(slots=True)
class LedgerCheckCounts:
    """The counts of a check of a ledger. damage: the first damaged rows and history lines, at most SHOWN of them."""

    ledger: str
    counts: Counter[tuple[str, Soundness]] = field(default_factory=Counter)
    damage: list[Checked] = field(default_factory=list)
    complete: bool = False

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
        return {"ledger": self.ledger, "complete": self.complete, **kinds, "damage": damage}

    def lines(self) -> Iterator[str]:
        for kind in _KINDS:
            states = ", ".join(f"{self.counts[kind, state]:,} {state}" for state in _STATES)
            old = " (an earlier version wrote them)" if self.counts[kind, UNSEALED] else ""
            yield f"{counted(sum(self.counts[kind, state] for state in _STATES), kind)}: {states}{old}"
        for one in self.damage:
            yield f"  damaged {one.kind}: {visible(f's3://{one.bucket}/{one.key}')}: {visible(one.words)}"
        if self.faults > len(self.damage):
            yield f"  and {self.faults - len(self.damage):,} more"
        if self.faults:
            yield "restore the ledger from a copy: it says nothing of these keys that can be relied on"
        if not self.complete:
            yield "complete: NO; the rest was not checked"


async def _check(ledger: Ledger, counts: LedgerCheckCounts, stop: Stop) -> None:
    async with aclosing(ledger.checked()) as parts:
        async for part in parts:
            counts.add(part)
            if stop:
                return
    counts.complete = True


CHECK: Final = WholeLedgerWork("--check", "checks the whole ledger", "checking", LedgerCheckCounts, _check)
