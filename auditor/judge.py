"""The judge: hands each rule the facts it declared, and turns a fact that could not be read into an undecided rule."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from auditor.models import (
    BucketFacts,
    Evidence,
    Finding,
    Judgement,
    Outcome,
    Skipped,
    Unread,
)
from auditor.plan import Plan, bucket_fact
from auditor.reports.lines import fingerprint
from auditor.rules.interface import OBJECT_FACTS, Hit, Rule
from auditor.verdict import VerdictJudge


class Judge:
    """Pure but for its inputs: same facts, same findings. Made once a run."""

    def __init__(
        self,
        plan: Plan,
        facts: BucketFacts,
        *,
        trusted: frozenset[str] = frozenset(),
        options: Mapping[str, Mapping[str, Any]] | None = None,
        versions: bool = False,
    ) -> None:
        self._plan = plan
        self._facts = facts
        self._versions = versions
        self._verdicts = VerdictJudge(facts, trusted, versions)
        self._fixed: dict[str, dict[str, Any]] = {
            rule.id: _fixed_facts(rule, facts, trusted, (options or {}).get(rule.id, {}))
            for rule in (*plan.bucket_rules, *plan.object_rules)
        }

    def bucket(self) -> list[Finding]:
        """The findings on the bucket itself, whose key is None."""
        found: list[Finding] = []
        for rule in self._plan.bucket_rules:
            facts = self._fixed[rule.id]
            hits = rule.check(*(facts[name] for name in rule.reads))
            found.extend(self._findings(rule, hits, None, None))
        return found

    def object(self, evidence: Evidence) -> Judgement:
        """What the rules and the verdict say of one object; nothing of one that vanished."""
        if evidence.outcome is Outcome.VANISHED:
            return Judgement(evidence, None, (), ())
        findings: list[Finding] = []
        undecided: list[str] = []
        for rule in self._plan.object_rules:
            facts = self._facts_of(rule, evidence)
            if facts is None:
                undecided.append(rule.id)
            elif facts:
                hits = rule.check(*facts)
                findings.extend(self._findings(rule, hits, evidence.ref.key, evidence.ref.version_id))
        verdict = self._verdicts.verdict(evidence.ref, evidence.acl, evidence.head)
        return Judgement(evidence, verdict, tuple(findings), tuple(undecided))

    def _facts_of(self, rule: Rule, evidence: Evidence) -> list[Any] | None:
        """The check's arguments; None when one is unread, [] when one was skipped and the rule does not apply."""
        fixed = self._fixed[rule.id]
        arguments: list[Any] = []
        unread = skipped = False
        for name in rule.reads:
            fact = getattr(evidence, name) if name in OBJECT_FACTS else fixed[name]
            unread = unread or isinstance(fact, Unread)
            skipped = skipped or isinstance(fact, Skipped)
            arguments.append(fact)
        if skipped:
            return []
        return None if unread else arguments

    def _findings(self, rule: Rule, hits: Iterable[Hit], key: str | None, version_id: str | None) -> Iterable[Finding]:
        for hit in hits:
            mark = fingerprint(
                self._facts.bucket,
                key,
                rule.id,
                hit.grantee,
                hit.permission,
                version_id if self._versions else None,
            )
            yield Finding(
                mark,
                rule.id,
                hit.severity or rule.severity,
                key,
                version_id,
                hit.grantee,
                hit.permission,
                hit.message,
            )


def _fixed_facts(rule: Rule, facts: BucketFacts, trusted: frozenset[str], options: Mapping[str, Any]) -> dict[str, Any]:
    """The facts of a rule that are the same for every object of the run."""
    fixed: dict[str, Any] = {}
    for name in rule.reads:
        if name.startswith("bucket."):
            fixed[name] = bucket_fact(facts, name)
        elif name.startswith("config."):
            fixed[name] = options[name.removeprefix("config.")]
        elif name == "trusted":
            fixed[name] = trusted
    return fixed
