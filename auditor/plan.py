"""What to ask and what to judge: follows from the selected rules and the bucket's facts, before the first object."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from auditor.bucket import BucketFacts
from auditor.errors import UsageError
from auditor.models import BUCKET_OWNER_ENFORCED, RuleUndecided, Skipped, Unread
from auditor.rules.interface import Rule

NOT_NEEDED = "no selected rule needs it"
ACLS_DISABLED = "ACLs are disabled (BucketOwnerEnforced)"


def select(
    rules: Sequence[Rule],
    options: Mapping[str, Mapping[str, Any]],
    only: Iterable[str],
    ignore: Iterable[str],
    level: str | None = None,
    *,
    ledger: bool = True,
) -> tuple[Rule, ...]:
    """The rules of a run, in the registry's order. A rule whose options are not configured is left out; at the level
    `exposure` so is one that needs a HEAD, and without a ledger one that needs digests.

    Raises UsageError for an id that does not exist, or a rule asked for by name that lacks its options or the ledger.
    """
    known = {rule.id for rule in rules}
    only, ignore = {name.upper() for name in only}, {name.upper() for name in ignore}
    if unknown := sorted((only | ignore) - known):
        raise UsageError(f"there is no rule {', '.join(unknown)}: `auditor rules` lists them")
    chosen = [rule for rule in rules if (not only or rule.id in only) and rule.id not in ignore]
    if level == "exposure":
        chosen = [rule for rule in chosen if "head" not in rule.reads]
    if not ledger:
        if lacking := [rule.id for rule in chosen if "digests" in rule.reads and rule.id in only]:
            raise UsageError(f"rule {lacking[0]} compares with a ledger: add --ledger sqlite:PATH")
        chosen = [rule for rule in chosen if "digests" not in rule.reads]
    ready = [rule for rule in chosen if set(rule.options) <= set(options.get(rule.id, {}))]
    if missing := sorted(rule.id for rule in chosen if rule not in ready and rule.id in only):
        first = next(rule for rule in chosen if rule.id == missing[0])
        raise UsageError(
            f"rule {first.id} needs its options: add [rules.{first.id}] with {', '.join(first.options)} to auditor.toml"
        )
    if not ready:
        raise UsageError("no rule is selected: loosen --only or --ignore")
    return tuple(ready)


@dataclass(frozen=True, slots=True)
class Plan:
    """acl, head: None when it is asked for every object, else why not.

    acl_for_owner: the ACL is asked all the same where the listing names no owner and a rule needs one.
    """

    bucket_rules: tuple[Rule, ...]
    object_rules: tuple[Rule, ...]
    undecided: tuple[RuleUndecided, ...]
    acl: Skipped | None
    head: Skipped | None
    acl_for_owner: bool = False


def bucket_fact(facts: BucketFacts, name: str) -> Any:
    """The value behind a rule's `bucket.X`: a fact, Unread or Skipped."""
    return getattr(facts, name.removeprefix("bucket."))


def make_plan(rules: Sequence[Rule], facts: BucketFacts) -> Plan:
    """A rule that lacks a bucket fact is undecided here, once, and dropped; one whose fact is skipped is dropped.

    With BucketOwnerEnforced so are the rules on ACLs and owners: no grant counts and the bucket's owner owns all.
    """
    ready: list[Rule] = []
    undecided: list[RuleUndecided] = []
    for rule in rules:
        needed = [bucket_fact(facts, name) for name in rule.reads if name.startswith("bucket.")]
        unread = next((fact for fact in needed if isinstance(fact, Unread)), None)
        if unread is not None:
            undecided.append(RuleUndecided(rule.id, unread.action, unread.code))
        elif not any(isinstance(fact, Skipped) for fact in needed):
            ready.append(rule)
    enforced = facts.ownership == BUCKET_OWNER_ENFORCED
    if enforced:
        ready = [rule for rule in ready if not {"acl", "owner"}.intersection(rule.reads)]
    acl, head = _needs(ready, "acl"), _needs(ready, "head")
    if enforced:
        acl = Skipped(ACLS_DISABLED)
    return Plan(
        tuple(rule for rule in ready if not rule.per_object),
        tuple(rule for rule in ready if rule.per_object),
        tuple(undecided),
        acl,
        head,
        acl_for_owner=not enforced and any("owner" in rule.reads for rule in ready),
    )


def _needs(rules: Sequence[Rule], fact: str) -> Skipped | None:
    return None if any(fact in rule.reads for rule in rules) else Skipped(NOT_NEEDED)


def carried_on(plan: Plan, earlier: Iterable[RuleUndecided]) -> Plan:
    """The plan of a run that goes on: a rule that it could not judge before stays undecided, whatever is readable now.

    The objects of that time are not read again.
    """
    now = {item.rule for item in plan.undecided}
    return replace(plan, undecided=(*plan.undecided, *(item for item in earlier if item.rule not in now)))
