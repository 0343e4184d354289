"""Find out which values a rule needs and a run folder does not have, while the run is judged again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from auditor.audit.judging_configuration import JudgedBy
from auditor.model.bucket import BUCKET_OWNER_ENFORCED, BucketFacts
from auditor.model.finding import Judgement, RuleUndecided
from auditor.model.json_codec import plain
from auditor.model.object import Skipped
from auditor.rules.base import Rule
from auditor.rules.plan import Plan, make_plan
from auditor.runs.run_plan import RunPlan
from auditor.text import counted

NOT_STORED: Final = "NotStored"
"""The error code of a rule that is undecided because the run folder does not have a value that it needs."""


class MissingValues:
    """The values that a run stored, and those that the rules needed and did not find. file: of the run. by: the
    configuration by which the run is judged again.
    """

    def __init__(self, file: RunPlan, by: JudgedBy) -> None:
        self._file = file
        self._by = by
        self._unstored: Counter[str] = Counter()
        """Number of objects by the ID of each rule that could not judge them, for lack of a stored value."""
        self._lacking: dict[str, RuleUndecided] = {}

    def plan(self, facts: BucketFacts) -> Plan:
        """Return the plan, without the rules whose facts the run did not ask for. facts: those by which to judge."""
        plan = make_plan(self._by.rules, facts)
        lacking = [item for rule in plan.object_rules if (item := self._not_asked(rule, facts))]
        names = {item.rule for item in lacking}
        ready = tuple(rule for rule in plan.object_rules if rule.id not in names)
        return replace(plan, object_rules=ready, undecided=(*plan.undecided, *lacking))

    def _not_asked(self, rule: Rule, facts: BucketFacts) -> RuleUndecided | None:
        """Return the rule as undecided if it is new to the run, and the run did not ask for a fact that it needs."""
        ask = self._file.ask
        if rule.id in self._file.selected:
            return None
        if ask.head is not None and rule.needs("head"):
            return RuleUndecided(rule.id, "HeadObject", NOT_STORED)
        if ask.acl is not None and rule.needs("acl") and facts.ownership != BUCKET_OWNER_ENFORCED:
            return RuleUndecided(rule.id, "GetObjectAcl", NOT_STORED)
        return None

    def note(self, judgement: Judgement) -> None:
        """Note the rules that lacked a value of this object."""
        for rule in judgement.unstored:
            self._unstored[rule] += 1
            if rule not in self._lacking and not self._judged_before(rule):
                self._lacking[rule] = RuleUndecided(rule, "HeadObject", NOT_STORED)
        self._note_owner(judgement)

    def _note_owner(self, judgement: Judgement) -> None:
        """Note the rules that the run did not judge by, and that lack the owner of this object."""
        if isinstance(judgement.evidence.owner, Skipped) and judgement.access is not None:
            for rule in self._by.rules:
                if "owner" in rule.reads and rule.id not in self._file.selected:
                    self._lacking[rule.id] = RuleUndecided(rule.id, "GetObjectAcl", NOT_STORED)

    def _judged_before(self, rule: str) -> bool:
        """True if the run was judged by this rule with the present options."""
        before: Mapping[str, Any] = self._file.configuration.get("rules") or {}
        return rule in self._file.selected and before.get(rule) == plain(self._by.settings.rules.get(rule))

    def undecided(self, known: Sequence[RuleUndecided]) -> tuple[RuleUndecided, ...]:
        """Return `known`, the rules that a plan names as undecided, and those that lacked a value, each once."""
        found = {item.rule: item for item in known}
        for rule in sorted(self._lacking.keys() - found):
            found[rule] = self._lacking[rule]
        return tuple(found.values())

    def words(self, run: str) -> Iterator[str]:
        """Yield a phrase for each rule that kept its findings for lack of a value. run: ID of the run."""
        for rule, number in sorted(self._unstored.items()):
            yield f"values that run {run} did not store: {rule} keeps its result on {counted(number, 'object')}"
