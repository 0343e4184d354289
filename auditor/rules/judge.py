"""Run each rule on the facts that it declares, and make a finding of each hit. A rule that lacks a fact is undecided.

Most objects of a bucket have the same owner and the same grants. Therefore a rule that reads only the ACL and the owner
runs once for each distinct ACL, and its answer is cached.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final, NamedTuple

from auditor.model.bucket import BucketFacts
from auditor.model.finding import Finding, Judgement, fingerprint
from auditor.model.object import Acl, Evidence, Skipped, Unread
from auditor.rules import RULES
from auditor.rules.base import OBJECT_FACTS, Hit, Rule, bucket_fact
from auditor.rules.plan import Plan, make_plan
from auditor.rules.selection import select
from auditor.verdict.judge import VerdictJudge

SHARED_FACTS: Final = frozenset({"acl", "owner"})
"""Names of the facts that many objects have in common. The owner comes from the ACL, or from the listing if no ACL is
read.
"""

CACHED_ACLS: Final = 1024
"""Largest number of ACLs for which the rules' answers are cached. The cache drops the least recently used ACL."""


class _BoundRule(NamedTuple):
    """A rule together with the facts that are the same for the whole run. order: the rule's position in the run."""

    order: int
    rule: Rule
    arguments: tuple[Any, ...]
    places: tuple[tuple[int, str], ...]
    """Index and name of each argument that is a fact of an object."""
    applies: bool
    """True if no fact of the run was skipped."""
    lacks: bool
    """True if a fact of the run could not be read: the rule is then undecided. make_plan() leaves such a rule out."""

    @classmethod
    def of(cls, order: int, rule: Rule, fixed: Mapping[str, Any]) -> _BoundRule:
        arguments = tuple(fixed.get(name) for name in rule.reads)
        places = tuple((place, name) for place, name in enumerate(rule.reads) if name in OBJECT_FACTS)
        applies = not any(isinstance(fact, Skipped) for fact in arguments)
        return cls(order, rule, arguments, places, applies, any(isinstance(fact, Unread) for fact in arguments))

    @property
    def shared(self) -> bool:
        """True if the rule reads no fact of an object but its ACL and its owner, so that its answers can be cached."""
        return SHARED_FACTS.issuperset(name for _, name in self.places)

    def ask(self, facts: Mapping[str, Any]) -> _RuleAnswer | None:
        """Run the rule's check on an object with these facts. Return None if there is no hit. Return None also if a
        fact was skipped: the rule does not apply to the object then.
        """
        arguments = list(self.arguments)
        unread = self.lacks
        for place, name in self.places:
            fact = arguments[place] = facts[name]
            if isinstance(fact, Skipped):
                return None
            unread = unread or isinstance(fact, Unread)
        if unread:
            return _RuleAnswer(self.order, self.rule, None)
        hits = tuple(self.rule.check(*arguments))
        return _RuleAnswer(self.order, self.rule, hits) if hits else None


class _RuleAnswer(NamedTuple):
    """The answer of one rule about one object. hits: None if the rule is undecided, as it lacked a fact."""

    order: int
    rule: Rule
    hits: tuple[Hit, ...] | None


class Judge:
    """Judges the bucket and each object of one run by the rules of a plan. The same facts give the same findings."""

    def __init__(
        self,
        plan: Plan,
        facts: BucketFacts,
        *,
        trusted: frozenset[str] = frozenset(),
        options: Mapping[str, Mapping[str, Any]] | None = None,
        versions: bool = False,
    ) -> None:
        self._facts = facts
        self._versions = versions
        self._verdicts = VerdictJudge(facts, trusted, versions)
        ready = [
            _BoundRule.of(order, rule, _fixed_facts(rule, facts, trusted, (options or {}).get(rule.id, {})))
            for order, rule in enumerate((*plan.bucket_rules, *plan.object_rules))
        ]
        ready = [one for one in ready if one.applies]
        self._of_bucket = [one for one in ready if not one.places]
        self._shared = [one for one in ready if one.places and one.shared]
        self._own = [one for one in ready if one.places and not one.shared]
        self._cached = lru_cache(CACHED_ACLS)(self._ask_shared)

    def bucket(self) -> list[Finding]:
        """Return the findings on the bucket itself; their key is None."""
        return self._findings([answer for one in self._of_bucket if (answer := one.ask({}))], None, None)

    def object(self, evidence: Evidence) -> Judgement:
        """Return the findings, the undecided rules and the verdict of one object. An object that vanished has no
        findings, no undecided rules, and the verdict None.
        """
        if evidence.vanished:
            return Judgement(evidence, None, (), ())
        ref, acl, head = evidence.ref, evidence.acl, evidence.head
        verdict = self._verdicts.verdict(ref, acl, head)
        answers = self._cached(acl, None if isinstance(acl, Acl) else ref.owner)
        facts = {"ref": ref, "acl": acl, "head": head, "owner": evidence.owner, "digests": evidence.digests}
        own = [answer for one in self._own if (answer := one.ask(facts))]
        if own:
            answers = sorted((*answers, *own))
        if not answers:
            return Judgement(evidence, verdict, (), ())
        undecided = tuple(answer.rule.id for answer in answers if answer.hits is None)
        return Judgement(evidence, verdict, tuple(self._findings(answers, ref.key, ref.version_id)), undecided)

    def _ask_shared(self, acl: Acl | Unread | Skipped, listed_owner: str | None) -> Sequence[_RuleAnswer]:
        """Return the answers of the rules that read only the ACL and the owner of an object. listed_owner: the owner in
        the listing's entry; None if the ACL was read, or if the entry names no owner.
        """
        owner = acl.owner if isinstance(acl, Acl) else acl if listed_owner is None else listed_owner
        facts = {"acl": acl, "owner": owner}
        return tuple(answer for one in self._shared if (answer := one.ask(facts)))

    def _findings(self, answers: Iterable[_RuleAnswer], key: str | None, version_id: str | None) -> list[Finding]:
        version = version_id if self._versions else None
        return [
            Finding(
                fingerprint(self._facts.bucket, key, rule.id, hit.grantee, hit.permission, version),
                rule.id,
                hit.severity or rule.severity,
                key,
                version_id,
                hit.grantee,
                hit.permission,
                hit.message,
            )
            for _, rule, hits in answers
            for hit in hits or ()
        ]


def judge(
    evidence: Evidence,
    bucket: BucketFacts,
    *,
    rules: Iterable[str] = (),
    trusted: Iterable[str] = (),
    options: Mapping[str, Mapping[str, Any]] | None = None,
) -> Judgement:
    """Judge one object by its facts, without any call: return its findings, its undecided rules and its verdict.

    rules: IDs of the rules to judge; empty for all rules. trusted: canonical IDs, account numbers or policy principals
    that count as insiders. options: the options of each rule, by its ID, as in auditor.toml. Raises UsageError for a
    rule that does not exist or lacks its options.
    """
    given = options or {}
    plan = make_plan(select(RULES, given, rules, (), ledger=not isinstance(evidence.digests, Skipped)), bucket)
    found = Judge(plan, bucket, trusted=frozenset(trusted), options=given).object(evidence)
    lacking = (one.rule for one in plan.undecided)
    return replace(found, undecided=(*lacking, *found.undecided))


def _fixed_facts(rule: Rule, facts: BucketFacts, trusted: frozenset[str], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts that the rule reads and that are the same for the whole run, by their names in `reads`."""
    fixed: dict[str, Any] = {}
    for name in rule.reads:
        if name.startswith("bucket."):
            fixed[name] = bucket_fact(facts, name)
        elif name.startswith("config."):
            fixed[name] = options[name.removeprefix("config.")]
        elif name == "trusted":
            fixed[name] = trusted
    return fixed
