"""Count the lines of a run anew, and compare the numbers with those of its summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

from auditor.model.access import Verdict
from auditor.model.finding import Severity
from auditor.model.json_codec import decode
from auditor.model.object import Outcome, Whole
from auditor.model.summary import Summary
from auditor.text import counted


class _Line(Struct, frozen=True):
    """The begin of a line that is only counted. key: None for a finding on the bucket."""

    key: str | None


class _Finding(Struct, frozen=True):
    key: str | None
    severity: Severity


class _Object(Struct, frozen=True):
    key: str
    size: Whole
    outcome: Outcome
    verdict: Verdict | None
    hashed: bool | None


_LINES: Final[Mapping[str, Any]] = {"objects": _Object, "findings": _Finding}
"""The type of the lines of each kind; the others are a _Line."""


class LineCounts:
    """The numbers of a run's lines by kind, outcome, verdict, severity and hashing.

    lines: the number of lines by kind.
    """

    def __init__(self) -> None:
        self.lines: Counter[str] = Counter()
        self._outcomes: Counter[str] = Counter()
        self._verdicts: Counter[str] = Counter()
        self._severities: Counter[str] = Counter()
        self._hashed: Counter[bool | None] = Counter()

    def add(self, kind: str, line: bytes) -> str | None:
        """Count a line of this kind of part, and return its key; None for a finding on the bucket. Raises JsonError for
        a line that is damaged.
        """
        found = decode(_LINES.get(kind, _Line), line)
        self.lines[kind] += 1
        if isinstance(found, _Object):
            self._outcomes[found.outcome] += 1
            self._verdicts[found.verdict or ""] += 1
            self._hashed[found.hashed] += 1
        elif isinstance(found, _Finding):
            self._severities[found.severity] += 1
        key: str | None = found.key
        return key

    def differences(self, summary: Summary) -> Iterator[str]:
        """Yield a sentence for each number of the summary that the lines do not have."""
        coverage, hashing = summary.coverage, summary.hashing
        routed = hashing.routed.objects if hashing else 0
        files = {
            "objects": coverage.listed,
            "undecided": coverage.undecided,
            "findings": sum(summary.findings.values()),
            "routed": routed,
        }
        for kind, number in files.items():
            if (found := self.lines[kind]) != number:
                yield f"{kind}/ has {counted(found, 'line')}, and the summary counts {number:,}"
        counts: list[tuple[str, int, int]] = [
            *((f"{one} objects", self._outcomes[one], getattr(coverage, one)) for one in Outcome),
            *((f"{one} objects", self._verdicts[one], summary.verdicts.get(one, 0)) for one in Verdict),
            *((f"{one} findings", self._severities[one], summary.findings.get(one, 0)) for one in Severity),
        ]
        if hashing is not None:
            counts.append(("hashed objects", self._hashed[True], hashing.known + hashing.hashed_now))
            left = hashing.queued + hashing.unhashable + hashing.pending
            counts.append(("objects to hash", self._hashed[False], left))
        for what, found, number in counts:
            if found != number:
                yield f"the lines have {found:,} {what}, and the summary counts {number:,}"
