"""Count the findings and the undecided objects of a run in a bounded number of groups, with a few samples each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import Struct, field

from auditor.model.finding import Severity
from auditor.reports.formats.base import RunLines

SAMPLES: Final = 5
"""Number of keys that a group names."""
LARGEST: Final = 400
"""Largest number of groups of one sort. The objects of further groups count in a group of their own, "others": error
codes come from a server, so nothing else bounds their number."""
OTHERS: Final = ("others", "")


class CountedGroup(Struct):
    """The findings of one rule and severity, or the objects that lack the same fact first. since: the oldest start;
    None if no line has one. keys: the first keys; a finding on the bucket has none.
    """

    name: tuple[str, str]
    count: int = 0
    since: str | None = None
    keys: list[str] = field(default_factory=list)

    def add(self, key: str | None, since: str | None = None) -> None:
        self.count += 1
        if since is not None and (self.since is None or since < self.since):
            self.since = since
        if key is not None and len(self.keys) < SAMPLES:
            self.keys.append(key)


def finding_groups(lines: RunLines) -> list[CountedGroup]:
    """Return the findings by rule and severity, the worst first. The name of a group is (rule, severity)."""
    rows = (((line.rule, line.severity.value), line.key, line.since) for line in lines.findings())
    rank = {severity.value: place for place, severity in enumerate(Severity)}
    return sorted(_grouped(rows), key=lambda one: (rank.get(one.name[1], len(rank)), -one.count, one.name))


def undecided_groups(lines: RunLines) -> list[CountedGroup]:
    """Return the undecided objects by the first fact that each lacks. The name of a group is (API operation, code)."""
    rows = (
        ((line.unread[0].action, line.unread[0].code) if line.unread else OTHERS, line.key, None)
        for line in lines.undecided()
    )
    return sorted(_grouped(rows), key=lambda one: (-one.count, one.name))


def _grouped(rows: Iterable[tuple[tuple[str, str], str | None, str | None]]) -> list[CountedGroup]:
    groups: dict[tuple[str, str], CountedGroup] = {}
    for name, key, since in rows:
        if name not in groups and len(groups) >= LARGEST:
            name = OTHERS
        groups.setdefault(name, CountedGroup(name)).add(key, since)
    return list(groups.values())
