"""Make the table of holes: the facts that could not be read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from auditor.model.object import Unread
from auditor.model.summary import Summary
from auditor.reports.highlights import Highlights
from auditor.reports.page.data import HoleRow
from auditor.reports.summary import failed_of
from auditor.rules import RULES

_NEEDED: Final = {"GetObjectAcl": "s3:GetObjectAcl", "HeadObject": "s3:GetObject", "GetObject": "s3:GetObject"}
_FACTS: Final = {"GetObjectAcl": "acl", "HeadObject": "head"}
_DENIED: Final = frozenset({"AccessDenied", "403", "Forbidden"})
_NAMED: Final = 8


def hole_rows(summary: Summary, shown: Highlights, places: Mapping[str, str]) -> Iterator[HoleRow]:
    """Yield the facts of objects that could not be read, by call and error, then the objects that could not be
    hashed, then those of the bucket, by rule.

    places: a prefix that stands for the objects of each call and error code.
    """
    for item in summary.unread:
        reason = f"{item.action} {item.code}"
        first = places.get(reason) or next(
            (one.key for one in shown.undecided if Unread(item.action, item.code) in one.unread), None
        )
        yield HoleRow(
            item.count, first, f"{item.action}: {item.code}", _rules(item.action), _advice(item.action, item.code)
        )
    for code, number in failed_of(summary).items():
        yield HoleRow(number, None, f"GetObject: {code}", "no digest: not hashed", _advice("GetObject", code))
    grouped: dict[tuple[str, str], list[str]] = {}
    for rule in summary.rules_undecided:
        grouped.setdefault((rule.action, rule.code), []).append(rule.rule)
    for (action, code), rules in grouped.items():
        yield HoleRow(None, None, f"{action}: {code}", ", ".join(rules), _advice(action, code))


def _rules(action: str) -> str:
    """Return the rules that need what this call reads."""
    fact = _FACTS.get(action)
    found = [rule.id for rule in RULES if fact and rule.needs(fact)]
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    return ", ".join(found[:_NAMED]) + more


def _advice(action: str, code: str) -> str:
    if action == "Verdict":
        return "see the objects with the verdict unknown"
    if code in _DENIED:
        needed = _NEEDED.get(action)
        return f"allow {needed} to the auditor" if needed else "allow the auditor what `auditor policy` prints"
    return "run again; if it stays, docs/troubleshooting.md has the codes"
