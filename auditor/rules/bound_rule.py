"""A rule together with the facts of a run, and its answer about one object."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from auditor.errors import NotStored
from auditor.model.bucket import BucketFacts
from auditor.model.object import Skipped, Unread
from auditor.rules.base import OBJECT_FACTS, SHARED_HEAD, Hit, Rule, bucket_fact

SHARED_FACTS: Final = frozenset({"acl", "owner", *(f"head.{name}" for name in SHARED_HEAD)})
"""Names of the facts that many objects have in common. The owner comes from the ACL, or from the listing if no ACL is
read.
"""

UNKNOWN: Final = Unread("Verdict", "Unknown")
"""The fact that a rule on exposed objects lacks if the verdict is unknown."""
KNOWN_IN_PART: Final = object()
"""Stands for a fact of an object that is known in part only, if the rule may need the rest of it."""


class BoundRule(NamedTuple):
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
    def of(
        cls, order: int, rule: Rule, facts: BucketFacts, run: Mapping[str, Any], options: Mapping[str, Any]
    ) -> BoundRule:
        """Bind a rule to the facts of a run. run: those that neither the bucket nor the configuration has."""
        fixed = {
            **run,
            **{name: bucket_fact(facts, name) for name in rule.reads if name.startswith("bucket.")},
            **{name: options[name.partition(".")[2]] for name in rule.reads if name.startswith("config.")},
        }
        arguments = tuple(fixed.get(name) for name in rule.reads)
        places = tuple((place, name) for place, name in enumerate(rule.reads) if name in OBJECT_FACTS)
        applies = not any(isinstance(fact, Skipped) for fact in arguments)
        return cls(order, rule, arguments, places, applies, any(isinstance(fact, Unread) for fact in arguments))

    @property
    def on_exposed(self) -> bool:
        """True if the rule is asked about exposed objects only."""
        return "access" in self.rule.reads

    @property
    def shared(self) -> bool:
        """True if the rule reads only facts of an object that many have in common, so that its answers are cached."""
        return SHARED_FACTS.issuperset(name for _, name in self.places)

    def ask(self, facts: Mapping[str, Any]) -> RuleAnswer | None:
        """Run the rule's check on an object with these facts. Return None if there is no hit. Return None also if a
        fact was skipped: the rule does not apply to the object then.
        """
        arguments = list(self.arguments)
        unread, stored = self.lacks, True
        for place, name in self.places:
            fact = arguments[place] = facts[name]
            if isinstance(fact, Skipped):
                return None
            unread = unread or isinstance(fact, Unread)
            stored = stored and fact is not KNOWN_IN_PART
        if unread:
            return RuleAnswer(self.order, self.rule, None)
        if not stored:
            return RuleAnswer(self.order, self.rule, None, stored=False)
        try:
            found = tuple(self.rule.check(*arguments))
        except NotStored:
            return RuleAnswer(self.order, self.rule, None, stored=False)
        hits = tuple([item for item in found if isinstance(item, Hit)])
        if len(hits) < len(found):
            lacking = next(item for item in found if isinstance(item, Unread))
            return RuleAnswer(self.order, self.rule, None, lacking)
        return RuleAnswer(self.order, self.rule, hits) if hits else None

    def ask_unknown(self, facts: Mapping[str, Any]) -> RuleAnswer | None:
        """Run the rule's check on an object whose verdict is unknown: a rule that would flag it is undecided."""
        answer = self.ask(facts)
        return answer and answer._replace(hits=None, lacking=answer.lacking or (UNKNOWN if answer.hits else None))


class RuleAnswer(NamedTuple):
    """The answer of one rule about one object. hits: None if the rule is undecided. lacking: the fact that it lacked,
    although no call failed. stored: False if the run folder does not have a value that the rule needs.
    """

    order: int
    rule: Rule
    hits: tuple[Hit, ...] | None
    lacking: Unread | None = None
    stored: bool = True
