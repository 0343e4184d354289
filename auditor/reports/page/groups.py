"""Make the lines of the page's lists: each group as a sentence, with its reason, its fix and its samples."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Final

from auditor.model.access import Verdict
from auditor.model.finding import Severity
from auditor.reports import words
from auditor.reports.group_words import RULES_BY_ID, meaning, mend, sentence_of_group
from auditor.reports.page.data import GroupView, Tick
from auditor.reports.page.from_rollups import GroupFacts
from auditor.reports.page.signs import BY_VERDICT
from auditor.rules.base import Rule

_GROUP_ID: Final = re.compile("[0-9a-f]{12}")


def view_of(group: GroupFacts) -> GroupView:
    """Return the group as the list shows it."""
    rule = RULES_BY_ID.get(group.rule or "")
    of_bucket = rule is not None and not rule.per_object
    before, subject, after = sentence_of_group(group.rule, group.verdict, group.who, group.count)
    return GroupView(
        id=group.id,
        kind=_kind(group),
        severity=group.severity.value if group.severity else "",
        verdict=group.verdict.value if group.verdict else "bucket" if of_bucket else "",
        sign=BY_VERDICT.get(group.verdict) if group.verdict else None,
        before=before,
        subject=subject,
        after=after,
        prefix=None if of_bucket else group.prefix,
        count=group.count,
        new=group.new or 0,
        new_words=_new(group),
        excepted=group.excepted,
        rule=group.rule or "",
        rows=tuple(_rows(group, rule)),
        why=meaning(group.rule, group.verdict),
        fix=mend(group.rule, group.verdict),
        samples=group.samples,
        more="" if of_bucket else _more(group),
        command="" if of_bucket else _command(group),
    )


def _kind(group: GroupFacts) -> str:
    """Return the first word of the group's line: its severity, its verdict, or that it is meant."""
    if group.severity:
        return group.severity.value
    if group.count == group.excepted:
        return "by intent"
    return (group.verdict or Verdict.UNKNOWN).value


def ticks(groups: Iterable[GroupView]) -> tuple[Tick, ...]:
    """Return the filters of the list: severities, verdicts and new ones, of which there is at least one group."""
    many = list(groups)
    severities = Counter(group.severity for group in many)
    verdicts = Counter(group.verdict for group in many)
    new = sum(1 for group in many if group.new)
    found = [Tick("sev", one.value, one.value, "", severities[one]) for one in Severity if severities[one]]
    found += [
        Tick("verdict", name, name, sign.mark, verdicts[name]) for name, sign in BY_VERDICT.items() if verdicts[name]
    ]
    if new:
        found.append(Tick("new", "1", "new", "", new))
    return tuple(found)


def _new(group: GroupFacts) -> str:
    if not group.new:
        return ""
    return "all new" if group.new == group.count else f"{group.new:,} new"


def _rows(group: GroupFacts, rule: Rule | None) -> Iterable[tuple[str, str]]:
    if group.rule is not None:
        yield "Rule", f"{group.rule} {rule.name}" if rule else group.rule
    if group.who and group.rule is not None:
        yield "Who", group.who
    if group.grantees:
        yield "Grantee", ", ".join(group.grantees)
    if group.permissions:
        yield "Permission", ", ".join(group.permissions)
    if group.bytes is not None:
        yield "Bytes", words.size(group.bytes)
    if group.excepted:
        yield "Public by intent", f"{group.excepted:,} of {group.count:,}"
    if group.since:
        yield "Since", words.short_date(group.since)
    if group.fingerprint:
        yield "Fingerprint", group.fingerprint
    if _GROUP_ID.fullmatch(group.id) and (group.rule is not None or group.verdict is not Verdict.UNKNOWN):
        yield "Accept it", f"auditor accept {group.id} --run RUN"


def _more(group: GroupFacts) -> str:
    left = group.count - len(group.samples)
    return f"{'and ' if group.samples else ''}{left:,} more in the run folder" if left > 0 else ""


def _command(group: GroupFacts) -> str:
    """Return a command that lists the group's keys. No text from outside is in it: people paste it into a shell."""
    if group.count <= len(group.samples):
        return ""
    if group.rule in RULES_BY_ID:
        return f"zcat findings/*.gz | jq -c 'select(.rule == \"{group.rule}\") | .key'"
    if group.rule is None and group.verdict is not None:
        return f"zcat objects/*.gz | jq -c 'select(.verdict == \"{group.verdict.value}\") | .key'"
    return ""
