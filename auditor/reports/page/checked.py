"""The section on the checks: the rules with their answers, the bucket's settings, and the numbers of the run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from auditor.model.bucket import PublicAccessBlock
from auditor.model.object import Skipped, Unread
from auditor.model.summary import Summary
from auditor.reports import words
from auditor.reports.page.data import NamedValue, RuleRow
from auditor.reports.summary import aside, kept_fact, not_hashed
from auditor.rules import RULES
from auditor.rules.base import Rule
from auditor.runs.bucket_file import BucketFile
from auditor.text import counted, healed_rows

_CALLS: Final = {"GetObjectAcl": "acl", "HeadObject": "head"}
_SWITCHES: Final = (
    ("block_public_acls", "BlockPublicAcls"),
    ("ignore_public_acls", "IgnorePublicAcls"),
    ("block_public_policy", "BlockPublicPolicy"),
    ("restrict_public_buckets", "RestrictPublicBuckets"),
)


def rule_rows(summary: Summary, bucket: BucketFile) -> tuple[RuleRow, ...]:
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
    known = {rule.id for rule in RULES}
    rows += [
        RuleRow(name, "a rule that this version does not have", found, "")
        for name, found in summary.rules.items()
        if name not in known
    ]
    return tuple(rows)


def _undecided(rule: Rule, summary: Summary, unread: list[str]) -> str:
    if unread:
        return f"undecided ({'; '.join(unread)})"
    lacking = [item.count for item in summary.unread if rule.needs(_CALLS.get(item.action, "-"))]
    if not lacking:
        return ""
    return f"{'up to ' if len(lacking) > 1 else ''}{counted(sum(lacking), 'object')} undecided"


def in_words(rows: tuple[RuleRow, ...]) -> str:
    """Return the answers of the rules as one phrase: they add up to the number of rules."""
    kinds = Counter(
        "off" if row.off else "found something" if row.found else "undecided" if row.undecided else "found nothing"
        for row in rows
    )
    order = ("found something", "undecided", "found nothing", "off")
    each = [f"{kinds[kind]:,} {'are ' if kind == 'off' else ''}{kind}" for kind in order if kinds[kind]]
    return f"{counted(len(rows), 'rule')}: {', '.join(each)}"


def settings(bucket: BucketFile) -> Iterator[NamedValue]:
    """Yield the bucket's own settings that decide on access, in words."""
    facts = bucket.facts
    yield NamedValue("Region", _known(facts.region))
    yield NamedValue("Object Ownership", _known(facts.ownership))
    for name, block in (("bucket", facts.public_access_block), ("account", facts.account_public_access_block)):
        yield NamedValue(f"Public access block of the {name}", _block(block))
    public = facts.policy_is_public
    yield NamedValue(
        "Bucket policy is public", ("yes" if public else "no") if isinstance(public, bool) else _known(public)
    )
    yield NamedValue("Versioning", _known(facts.versioning))
    encryption = facts.encryption
    if isinstance(encryption, Unread | Skipped):
        yield NamedValue("Default encryption", _known(encryption))
    else:
        yield NamedValue("Default encryption", encryption.algorithm or "none")
    yield NamedValue("Rules of access", facts.semantics.value)
    yield NamedValue("Trusted", ", ".join(bucket.configuration.get("trusted") or ()) or "nobody else")


def _known(value: object) -> str:
    if isinstance(value, Unread):
        return f"not read: {value.action} {value.code}"
    return f"not asked: {value.reason}" if isinstance(value, Skipped) else str(value)


def _block(block: PublicAccessBlock | Unread | Skipped) -> str:
    if not isinstance(block, PublicAccessBlock):
        return _known(block)
    on = [label for name, label in _SWITCHES if getattr(block, name)]
    off = [label for name, label in _SWITCHES if not getattr(block, name)]
    if not off:
        return "all four switches are on"
    return f"on: {', '.join(on)}; off: {', '.join(off)}" if on else "all four switches are off"


def numbers(summary: Summary) -> Iterator[NamedValue]:
    """Yield the numbers of the run that no other section has: hashing, calls, audiences, trusted entries."""
    for verdict, counts in summary.audiences.items():
        for audience, number in counts.items():
            yield NamedValue(f"{verdict}: {words.audience(audience)}", counted(number, "object"))
    if (hashing := summary.hashing) is not None:
        each = ", ".join(f"{number:,} {name.replace('_', ' ')}" for name, number in hashing.counts.items())
        yield NamedValue(f"Hashing ({', '.join(hashing.algorithms)})", each)
        for phrase in (*not_hashed(hashing.failed), *aside(hashing)):
            yield NamedValue("Not hashed", phrase)
    for phrase in healed_rows(summary.healed):
        yield NamedValue("Ledger", phrase)
    for name, fact in (("ACLs", summary.kept.acl), ("HEADs", summary.kept.head)):
        if fact.oldest is not None:
            yield NamedValue(f"{name} kept", kept_fact(fact))
    if summary.trust_unused:
        yield NamedValue("Trusted in vain", ", ".join(summary.trust_unused))
