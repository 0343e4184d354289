"""What the reports name of a run of any size: its first exposed objects, worst findings and first undecided objects."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import count
from typing import Any, Final

from auditor.model.finding import Severity, Verdict
from auditor.model.object import PUBLIC_GROUPS

FINDINGS: Final = 1_000
EXPOSED: Final = 200
UNDECIDED: Final = 200
_RANK: Final = {severity.value: rank for rank, severity in enumerate(Severity)}
_OPENING: Final = ("O", "B")
"""First letters of the rules that say who can reach something; of equal severity theirs are shown first."""

Line = dict[str, Any]


class WorstFindings:
    """Keeps the `limit` worst finding lines of any number, by severity, access before all else, then key."""

    def __init__(self, limit: int = FINDINGS) -> None:
        self._limit = limit
        self._kept: list[tuple[tuple[int, bool, str, int], Line]] = []
        self._serial = count()
        self._seen = 0

    def add(self, line: Line) -> None:
        self._seen += 1
        closed = not line["rule"].startswith(_OPENING)
        # The serial number keeps the order of arrival, and two dicts from being compared.
        order = (_RANK[line["severity"]], closed, line["key"] or "", next(self._serial))
        if len(self._kept) >= self._limit:
            if not self._kept or order >= self._kept[-1][0]:
                return
            self._kept.pop()
        bisect.insort(self._kept, (order, line))

    def lines(self) -> list[Line]:
        """Worst first."""
        return [line for _, line in self._kept]

    @property
    def more(self) -> int:
        """How many were seen and not kept."""
        return self._seen - len(self._kept)


class Highlights:
    """Takes every line, keeps what is shown; memory stays that of the limits."""

    def __init__(self) -> None:
        self.worst = WorstFindings()
        self.exposed: list[Line] = []
        self.undecided: list[Line] = []

    def add(self, line: Mapping[str, Any], findings: Iterable[Line], undecided: Line | None) -> None:
        """One object's lines; objects come in key order."""
        self._add_object(line)
        self.add_findings(findings)
        if undecided is not None and len(self.undecided) < UNDECIDED:
            self.undecided.append(undecided)

    def add_findings(self, lines: Iterable[Line]) -> None:
        for line in lines:
            self.worst.add(line)

    def _add_object(self, line: Mapping[str, Any]) -> None:
        if line["verdict"] == Verdict.EXPOSED.value and len(self.exposed) < EXPOSED:
            self.exposed.append({name: line[name] for name in ("key", "version_id", "rules")})

    @classmethod
    def read(cls, lines: Callable[[str], Iterator[Line]], exposed: int) -> Highlights:
        """What the parts of a run hold. lines: of one kind (objects, findings, undecided), in key order.

        exposed: how many objects are; the objects are read no further than needed to name them.
        """
        shown = cls()
        wanted = min(exposed, EXPOSED)
        objects = lines("objects")
        while len(shown.exposed) < wanted and (line := next(objects, None)) is not None:
            shown._add_object(line)
        shown.add_findings(lines("findings"))
        for line in lines("undecided"):
            if len(shown.undecided) == UNDECIDED:
                break
            shown.undecided.append(line)
        return shown


def masked(finding: Mapping[str, Any]) -> bool:
    """The finding says who is granted access, and something prevents just that today: its words alone would mislead."""
    verdict = finding.get("verdict")
    if finding["grantee"] in PUBLIC_GROUPS:
        return verdict in {Verdict.SHARED.value, Verdict.MASKED.value, Verdict.PRIVATE.value}
    return verdict == Verdict.MASKED.value and str(finding["rule"]).startswith(_OPENING)
