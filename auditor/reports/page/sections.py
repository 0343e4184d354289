"""The sections of an audit's page that are tables: the changes, the holes, the exceptions, the checks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from auditor.model.bucket import Encryption, PublicAccessBlock
from auditor.model.object import Skipped, Unread
from auditor.model.summary import ChangeKind, Changes, Summary
from auditor.reports import phrases
from auditor.reports.page.data import HoleRow, RuleRow
from auditor.reports.summary import aside, failed_of, kept_fact, not_hashed
from auditor.rules import RULES, RULES_BY_ID
from auditor.rules.base import Rule
from auditor.runs.run_files import RunPlan
from auditor.text import counted, enumerated, healed_rows

_KINDS: Final = (
    (ChangeKind.NEW, "+", "new", "They were private, or were not there."),
    (ChangeKind.WORSENED, "+", "worsened", "More parties can get in than before."),
    (ChangeKind.IMPROVED, "−", "improved", "Fewer parties can get in than before, but some still can."),
    (ChangeKind.RESOLVED, "−", "resolved", "Read again, and private now, or without the finding."),
    (ChangeKind.GONE, "", "gone", "Deleted. They do not count as resolved."),
    (ChangeKind.UNREAD, "", "not looked at again", "A fact could not be read, or the listing did not reach them."),
    (ChangeKind.DECIDED, "", "decided", "The last run could not tell; they may be older."),
    (ChangeKind.EXCEPTED, "", "covered by an exception", "They were not in the last run."),
    (ChangeKind.UNCOVERED, "+", "no longer covered", "An exception covered them in the last run."),
)


def heading(changes: Changes) -> str:
    """Return the heading of the section; "" if the run says nothing of changes."""
    if changes.against is None:
        return "Since the last run" if changes.why_not else ""
    moment = phrases.began(changes.against)
    return f"Since the run of {moment.day} {moment:%B %Y, %H:%M} UTC" if moment else "Since the last run"


def unchanged(changes: Changes) -> str:
    """Return the sentence on a comparison that was not made, or that found nothing; "" if there are changes."""
    if changes.why_not:
        return f"{changes.why_not[:1].upper()}{changes.why_not[1:]}."
    return "" if changes.against is None or any(changes.classes.values()) else "Nothing has changed."


def change_cards(changes: Changes) -> Iterator[tuple[str, int, str, str]]:
    """Yield a card for each kind of change that occurs: its number of objects, then of findings."""
    for kind, sign, name, text in _KINDS:
        objects, of_objects = _of_kind(changes.verdicts, kind)
        findings, of_findings = _of_kind(changes.findings, kind)
        more = f" {counted(findings, 'finding')}: {of_findings}." if findings else ""
        if objects:
            yield sign, objects, f"{name}: {of_objects}", f"{text}{more}"
        elif findings:
            yield sign, findings, f"{name} (findings)", f"{of_findings}."


def _of_kind(table: Mapping[str, Mapping[str, int]], kind: ChangeKind) -> tuple[int, str]:
    """Return the sum of a kind of changes, and its parts in words. table: numbers by verdict or severity, and kind."""
    counts = {name: kinds[kind] for name, kinds in table.items() if kinds.get(kind)}
    return sum(counts.values()), enumerated(counts)


_NEEDED: Final = {"GetObjectAcl": "s3:GetObjectAcl", "HeadObject": "s3:GetObject", "GetObject": "s3:GetObject"}
_FACTS: Final = {"GetObjectAcl": "acl", "HeadObject": "head"}
_DENIED: Final = frozenset({"AccessDenied", "403", "Forbidden"})
_NAMED: Final = 8


def hole_rows(summary: Summary, places: Mapping[str, str]) -> Iterator[HoleRow]:
    """Yield the facts of objects that could not be read, by call and error, then the objects that could not be
    hashed, then those of the bucket, by rule.

    places: a prefix or a key that stands for the objects of each call and error code.
    """
    for item in summary.unread:
        place, advice = places.get(f"{item.action} {item.code}"), _advice(item.action, item.code)
        yield HoleRow(item.count, place, f"{item.action}: {item.code}", _rules(item.action), advice)
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
        return f"allow the auditor {_NEEDED.get(action) or 'the actions that `auditor policy` prints'}"
    return "run again; if it persists, docs/troubleshooting.md has the codes"


_SWITCHES: Final = {name: name.title().replace("_", "") for name in PublicAccessBlock.__struct_fields__}
"""S3's name of each switch of a public access block."""


def rule_rows(summary: Summary, bucket: RunPlan) -> tuple[RuleRow, ...]:
    """Return a row for each rule, in the order of RULES."""
    undecided: dict[str, list[str]] = {}
    for item in summary.rules_undecided:
        undecided.setdefault(item.rule, []).append(f"{item.action}: {item.code}")
    selected = set(bucket.selected)
    rows = []
    for rule in RULES:
        off = rule.id not in selected and rule.id not in summary.rules and rule.id not in undecided
        why = "" if off else _undecided(rule, summary, undecided.get(rule.id, []))
        rows.append(RuleRow(rule.id, rule.title, summary.rules.get(rule.id, 0), why, off))
    rows += [
        RuleRow(name, "a rule that this version does not have", found, "")
        for name, found in summary.rules.items()
        if name not in RULES_BY_ID
    ]
    return tuple(rows)


def _undecided(rule: Rule, summary: Summary, unread: list[str]) -> str:
    if unread:
        return f"undecided ({'; '.join(unread)})"
    lacking = [item.count for item in summary.unread if rule.needs(_FACTS.get(item.action, "-"))]
    if not lacking:
        return "" if summary.complete else "the run is not complete"
    return f"{'up to ' if len(lacking) > 1 else ''}{counted(sum(lacking), 'object')} undecided"


def rules_in_words(rows: tuple[RuleRow, ...]) -> str:
    """Return the answers of the rules as one phrase: they add up to the number of rules."""
    kinds = Counter(
        "off" if row.off else "found something" if row.found else "undecided" if row.undecided else "found nothing"
        for row in rows
    )
    order = ("found something", "undecided", "found nothing", "off")
    each = [f"{kinds[kind]:,} {'are ' if kind == 'off' else ''}{kind}" for kind in order if kinds[kind]]
    return f"{counted(len(rows), 'rule')}: {', '.join(each)}"


def settings(bucket: RunPlan) -> Iterator[tuple[str, str]]:
    """Yield the bucket's own settings that decide on access, in words."""
    facts = bucket.facts
    yield "Region", _known(facts.region)
    yield "Object Ownership", _known(facts.ownership)
    for name, block in (("bucket", facts.public_access_block), ("account", facts.account_public_access_block)):
        yield f"Public access block of the {name}", _block(block)
    public = facts.policy_is_public
    yield "Bucket policy is public", ("yes" if public else "no") if isinstance(public, bool) else _known(public)
    yield "Versioning", _known(facts.versioning)
    kind = facts.encryption.algorithm or "none" if isinstance(facts.encryption, Encryption) else facts.encryption
    yield "Default encryption", _known(kind)
    yield "Rules of access", facts.semantics.value
    yield "Trusted", ", ".join(bucket.configuration.get("trusted") or ()) or "nobody else"


def _known(value: object) -> str:
    if isinstance(value, Unread):
        return f"not read: {value.action} {value.code}"
    return f"not asked: {value.reason}" if isinstance(value, Skipped) else str(value)


def _block(block: PublicAccessBlock | Unread | Skipped) -> str:
    if not isinstance(block, PublicAccessBlock):
        return _known(block)
    on = [label for name, label in _SWITCHES.items() if getattr(block, name)]
    off = [label for name, label in _SWITCHES.items() if not getattr(block, name)]
    if not off:
        return "all four switches are on"
    return f"on: {', '.join(on)}; off: {', '.join(off)}" if on else "all four switches are off"


def numbers(summary: Summary) -> Iterator[tuple[str, str]]:
    """Yield the numbers of the run that no other section has: hashing, calls, audiences, trusted entries."""
    for verdict, counts in summary.audiences.items():
        for audience, number in counts.items():
            yield f"{verdict}: {phrases.audience(audience)}", counted(number, "object")
    if (hashing := summary.hashing) is not None:
        each = enumerated(hashing.counts).replace("_", " ")
        yield f"Hashing ({', '.join(hashing.algorithms)})", each
        for phrase in (*not_hashed(hashing.failed), *aside(hashing)):
            yield "Not hashed", phrase
    for phrase in healed_rows(summary.healed):
        yield "Ledger", phrase
    for name, fact in (("ACLs", summary.kept.acl), ("HEADs", summary.kept.head)):
        if fact.oldest is not None:
            yield f"{name} kept", kept_fact(fact)
    if summary.trust_unused:
        yield "Trust not used", ", ".join(summary.trust_unused)
