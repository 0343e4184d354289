"""What befalls the demo's bytes once they are hashed, as no call of S3 would do it; and whether it was found."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from auditor.cli.demo.bucket import BUCKET
from auditor.model.target import Target
from auditor.text import visible
from auditor.verify.outcome import SIGNS, VerifyOutcome
from auditor.verify.summary import VerifySummary

Change = Callable[[bytes], bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """key: of a planted object. what: for people. change: its new bytes, of the same number; None: it is deleted."""

    key: str
    what: str
    change: Change | None = None

    @property
    def outcome(self) -> VerifyOutcome:
        """What is right to say of it."""
        return VerifyOutcome.MISSING if self.change is None else VerifyOutcome.MISMATCH

    @property
    def line(self) -> str:
        """Of the combined report."""
        return f"{SIGNS[self.outcome]} {visible(self.key)}"


def _flip(body: bytes) -> bytes:
    """The lowest bit of the first byte is another."""
    return bytes([body[0] ^ 1]) + body[1:]


def _blank(body: bytes) -> bytes:
    return bytes(len(body))


DAMAGED: Final = (
    Damage(key="backups/customers.sql", what="one bit is not what it was", change=_flip),
    Damage(key="board/minutes.txt", what="zeros where there was text", change=_blank),
    Damage(key="deploy/settings.yml", what="deleted, and nothing told of it"),
)
MOST_VERIFIED: Final = 300
"""Objects, the first in key order: a ledger in moto takes its time, and all that is damaged is among them."""


def range_of(keys: Iterable[str]) -> Target:
    """What is verified of a bucket that has these keys."""
    first = sorted(keys, key=str.encode)[:MOST_VERIFIED]
    return Target(BUCKET, stop_at=first[-1])


@dataclass(frozen=True, slots=True)
class VerifiedDamage:
    """What `verify` said. lines: of the combined report, all but the matches."""

    summary: VerifySummary
    lines: frozenset[str]

    def found(self, damage: Damage) -> bool:
        return damage.line in self.lines

    def differences(self, objects: int) -> list[str]:
        """What is wrong with it, in sentences. objects: how many were loaded."""
        match, whole = self.summary.outcomes[VerifyOutcome.MATCH], min(objects, MOST_VERIFIED) - len(DAMAGED)
        checks = {
            f"the verification {self.summary.run} is not complete": not self.summary.complete,
            f"{match:,} of {whole:,} undamaged objects match": match != whole,
        }
        alarms = self.lines - {damage.line for damage in DAMAGED}
        return [
            *(sentence for sentence, wrong in checks.items() if wrong),
            *(f"{visible(one.key)}: {one.outcome} was missed" for one in DAMAGED if not self.found(one)),
            *(f"the verification says {line!r}, which is a false alarm" for line in sorted(alarms)),
        ]


class Differing:
    """Takes a combined report and keeps what does not match."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def write(self, text: str, /) -> None:
        if not text.startswith(SIGNS[VerifyOutcome.MATCH]):
            self.lines.append(text.rstrip("\n"))
