"""The summary of a run, its exit code, and what the run did not look at."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any, Final

from auditor.model.bucket import BucketFacts
from auditor.model.finding import RuleUndecided, Severity
from auditor.model.object import Skipped, Unread
from auditor.runs.tally import Tally
from auditor.text import counted, visible

_FACTS: Final = {
    "region": "region",
    "owner": "owner",
    "ownership": "object ownership",
    "public_access_block": "public access block of the bucket",
    "account_public_access_block": "public access block of the account",
    "acl": "ACL of the bucket",
    "policy_is_public": "policy status of the bucket",
    "policy": "policy of the bucket",
    "versioning": "versioning",
    "encryption": "default encryption of the bucket",
    "request_payer": "request payer",
}
"""Bucket facts whose absence the user must know of, in the user's words."""

NEVER: Final = (
    "IAM users and roles of the bucket's own account, whose own policies can let them read",
    "access points, multi-region access points and Object Lambda access points, which have policies of their own",
    "CloudFront, presigned URLs, and whoever else is allowed to read and passes the bytes on",
    "policies and grants of KMS keys",
    "object tags",
    "public access block and control policies set for the whole organization",
)
"""What no run looks at."""


def summary(
    *,
    run: str,
    out: str,
    target: Mapping[str, Any],
    engine: str,
    complete: bool,
    tally: Tally,
    rules_undecided: Iterable[RuleUndecided],
    algorithms: Sequence[str] | None,
    not_looked_at: Sequence[str],
    seconds: float,
    resume: Mapping[str, Any] | None = None,
    accepted_rules: int = 0,
) -> dict[str, Any]:
    """What summary.json holds; "rules" and "unread" worst first.

    out: URI of the run folder. target: bucket, prefix, versions, start_after, stop_at. algorithms: those wanted, None
    without a ledger. accepted_rules: how many of rules_undecided the configuration accepts. Raises ValueError when
    the tally does not add up.
    """
    tally.check(hashing=algorithms is not None)
    counts = tally.copy()
    hashing = None if algorithms is None else {"algorithms": list(algorithms), **counts.hashing_summary()}
    unread = sorted(counts.unread.items(), key=lambda item: (-item[1], item[0]))
    return {
        "run": run,
        "out": out,
        "target": dict(target),
        "engine": engine,
        "complete": complete,
        "coverage": counts.coverage,
        "verdicts": counts.verdicts,
        "findings": counts.findings,
        "rules": dict(sorted(counts.rules.items(), key=lambda item: (-item[1], item[0]))),
        "rules_undecided": [{"rule": item.rule, "action": item.action, "code": item.code} for item in rules_undecided],
        "unread": [_reason(words, number) for words, number in unread],
        "accepted": {"undecided": counts.accepted, "rules": accepted_rules},
        "hashing": hashing,
        "calls": counts.calls,
        "not_looked_at": list(not_looked_at),
        "seconds": round(seconds, 1),
        "resume": None if resume is None else dict(resume),
    }


def exit_code(summary: Mapping[str, Any], fail_on: Severity | None) -> int:
    """0, 3 (a finding at or above fail_on; None: never) or, above all, 4 (a hole that nobody accepted)."""
    if holes(summary):
        return 4
    if fail_on is None:
        return 0
    found = summary["findings"]
    return 3 if any(found[severity.value] for severity in Severity if severity.at_least(fail_on)) else 0


def holes(summary: Mapping[str, Any]) -> list[str]:
    """What the run failed to see and nobody accepted, in words; empty where it saw everything."""
    known = summary.get("accepted") or {"undecided": 0, "rules": 0}
    objects = summary["coverage"]["undecided"] - known["undecided"]
    rules = len(summary["rules_undecided"]) - known["rules"]
    return [*([] if summary["complete"] else ["the listing did not reach its end"]), *_undecided(objects, rules)]


def accepted(summary: Mapping[str, Any]) -> list[str]:
    """The holes that the configuration accepts, in words."""
    known = summary.get("accepted") or {"undecided": 0, "rules": 0}
    return _undecided(known["undecided"], known["rules"])


def _undecided(objects: int, rules: int) -> list[str]:
    counts = ((objects, "object"), (rules, "rule"))
    return [f"{counted(number, noun)} undecided" for number, noun in counts if number > 0]


def aside(hashing: Mapping[str, Any]) -> list[str]:
    """The objects that were not hashed on purpose, in words that are safe to print: for their cost, and routed."""
    words = []
    if left := hashing.get("left_for_cost"):
        each = ", ".join(f"{visible(name)} {_amount(counts)}" for name, counts in left.items())
        words.append(f"left, since reading them is charged: {each}; --accept-cost hashes them")
    if (routed := hashing.get("routed")) and routed["objects"]:
        words.append(f"left to S3 Batch Operations: {_amount(routed)}; the jobs are in the run folder, batch/")
    return words


def _amount(counts: Mapping[str, int]) -> str:
    return f"{counted(counts['objects'], 'object')} of {counts['bytes']:,} bytes"


def alarming(summary: Mapping[str, Any]) -> bool:
    """Something is exposed, or a finding is critical or high: nothing that a report may show in green."""
    found = summary["findings"]
    return bool(summary["verdicts"]["exposed"] or found["critical"] or found["high"])


def not_looked_at(
    facts: BucketFacts | None,
    target: Mapping[str, Any],
    acl: Skipped | None = None,
    head: Skipped | None = None,
) -> list[str]:
    """What `private` does not speak of in this run, in words that are safe to print.

    facts: None where they were not read at all. acl, head: why these were asked of no object; None where they were.
    """
    return [*NEVER, *_unlisted(target), *_unasked(facts, acl, head)]


def _unlisted(target: Mapping[str, Any]) -> list[str]:
    words = []
    if not target["versions"]:
        words.append("versions other than the current one (--versions looks at them)")
    if target["prefix"]:
        words.append(f"keys that do not begin with {visible(target['prefix'])}")
    if target["start_after"] is not None:
        words.append(f"keys up to and including {visible(target['start_after'])}")
    if target["stop_at"] is not None:
        words.append(f"keys after {visible(target['stop_at'])}")
    return words


def _unasked(facts: BucketFacts | None, acl: Skipped | None, head: Skipped | None) -> list[str]:
    words = []
    if acl is not None:
        words.append(f"ACLs of the objects: {visible(acl.reason)}")
    if head is not None:
        words.append(f"metadata, headers and encryption of the objects: {visible(head.reason)}")
    if facts is None:
        return [*words, "the bucket's own settings"]
    for item in fields(facts):
        value = getattr(facts, item.name)
        if isinstance(value, Skipped) and item.name in _FACTS:
            words.append(f"{_FACTS[item.name]}: {visible(value.reason)}")
        elif isinstance(value, Unread) and item.name in _FACTS:
            words.append(f"{_FACTS[item.name]}, which could not be read: {visible(f'{value.action} {value.code}')}")
    return words


def _reason(words: str, number: int) -> dict[str, Any]:
    action, _, code = words.partition(" ")
    return {"action": action, "code": code, "count": number}
