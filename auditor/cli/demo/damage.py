"""Damage some of the demo's objects after the hashing, without calls to S3, and check that `verify` names them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from msgspec import Struct

from auditor.cli.demo.bucket import BUCKET
from auditor.model.digest import VerifyOutcome
from auditor.model.target import Target
from auditor.text import visible
from auditor.verify.outcome import SIGNS
from auditor.verify.summary import VerifySummary

Change = Callable[[bytes], bytes]


class Damage(Struct, frozen=True, kw_only=True):
    """A planned damage of one planted object. key: the object's key. description: words for the user.

    change: a function that makes other bytes of the same size from the object's bytes; None: the object is deleted.
    """

    key: str
    description: str
    change: Change | None = None

    @property
    def outcome(self) -> VerifyOutcome:
        """The outcome that `auditor verify` must report for the damaged object."""
        return VerifyOutcome.MISSING if self.change is None else VerifyOutcome.MISMATCH

    @property
    def line(self) -> str:
        """The line that the damaged object must have in the combined report of `auditor verify`."""
        return f"{SIGNS[self.outcome]} {visible(self.key)}"


def _flip(body: bytes) -> bytes:
    return bytes([body[0] ^ 1]) + body[1:]


def _blank(body: bytes) -> bytes:
    return bytes(len(body))


DAMAGED: Final = (
    Damage(key="backups/customers.sql", description="one bit is flipped", change=_flip),
    Damage(key="board/minutes.txt", description="its text is replaced by zeros", change=_blank),
    Damage(key="deploy/settings.yml", description="deleted without a notification"),
)
MOST_VERIFIED: Final = 300
"""Largest number of objects that the demo verifies: the first in key order, which include all damaged ones. moto's
DynamoDB is too slow for more.
"""


def range_of(keys: Iterable[str]) -> Target:
    """Return the range of keys to verify: the first MOST_VERIFIED ones. keys: all object keys of the bucket."""
    first = sorted(keys, key=str.encode)[:MOST_VERIFIED]
    return Target(BUCKET, stop_at=first[-1])


class VerifiedDamage(Struct, frozen=True):
    """The result of the demo's verification. lines: the combined report's lines on objects that do not match."""

    summary: VerifySummary
    lines: frozenset[str]

    def found(self, damage: Damage) -> bool:
        return damage.line in self.lines

    def differences(self, objects: int) -> list[str]:
        """Return a sentence for each unexpected result; [] if there is none. objects: number of uploaded objects."""
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
    """A writable text stream that keeps the lines of a combined report on objects that do not match, and drops the
    others.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []

    def write(self, text: str, /) -> None:
        if not text.startswith(SIGNS[VerifyOutcome.MATCH]):
            self.lines.append(text.rstrip("\n"))
