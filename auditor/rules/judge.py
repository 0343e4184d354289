"""Select the rules of a run, run each on the facts that it declares, and make a finding of each hit. A rule that lacks
a fact is undecided.

--only, --ignore, the level, the ledger and the options in auditor.toml select the rules. Most objects of a bucket have
the same owner, the same grants and the same encryption. Therefore a rule that reads only such facts runs once for all
objects that are alike in them, and its answer is cached.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from itertools import repeat
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from auditor.errors import NotStored, UsageError
from auditor.model.access import ObjectAccess, Verdict
from auditor.model.bucket import BucketFacts
from auditor.model.finding import Finding, Judgement, RuleUndecided, fingerprint
from auditor.model.object import CUSTOMER_KEY, Acl, Evidence, Head, PartialHead, Skipped, Unread
from auditor.rules import RULES
from auditor.rules.base import OBJECT_FACTS, SHARED_HEAD, Hit, Plan, Rule, bucket_fact, make_plan
from auditor.rules.named import no_rule, rule_id
from auditor.verdict.control import control_of, write_grants
from auditor.verdict.judge import VerdictJudge
from auditor.verdict.trust import Trust

SHARED_FACTS: Final = frozenset({"acl", "owner", *(f"head.{name}" for name in SHARED_HEAD)})
"""Names of the facts that many objects have in common. The owner comes from the ACL, or from the listing if no ACL is
read.
"""

UNKNOWN: Final = Unread("Verdict", "Unknown")
"""The fact that a rule on exposed objects lacks if the verdict is unknown."""
KNOWN_IN_PART: Final = object()
"""Stands for a fact of an object that is known in part only, if the rule may need the rest of it."""
_NO_DORMANT: Final = Skipped("no S3 Inventory shows a hidden part of the stored ACL")

CACHED_ANSWERS: Final = 1024
"""Largest number of combinations of shared facts for which the rules' answers are cached. The cache drops the least
recently used one.
"""

CUSTOMER_ALGORITHM: Final = "AES256"
"""The only algorithm of a customer's key (SSE-C)."""


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
    def on_dormant(self) -> bool:
        """True if the rule is asked only about objects with a hidden part of the stored ACL."""
        return "dormant" in self.rule.reads

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
            if type(fact) is Skipped:
                return None
            unread = unread or type(fact) is Unread
            stored = stored and fact is not KNOWN_IN_PART
        if unread:
            return RuleAnswer(self.order, self.rule, None)
        if not stored:
            return RuleAnswer(self.order, self.rule, None, stored=False)
        try:
            found = tuple(self.rule.check(*arguments))
        except NotStored:
            return RuleAnswer(self.order, self.rule, None, stored=False)
        if not found:
            return None
        hits = tuple([item for item in found if isinstance(item, Hit)])
        if len(hits) < len(found):
            lacking = next(item for item in found if isinstance(item, Unread))
            return RuleAnswer(self.order, self.rule, None, lacking)
        return RuleAnswer(self.order, self.rule, hits)

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


def select(
    rules: Sequence[Rule],
    options: Mapping[str, Mapping[str, Any]],
    only: Iterable[str],
    ignore: Iterable[str],
    level: str | None = None,
    *,
    ledger: bool = True,
) -> tuple[Rule, ...]:
    """Return the rules of a run, in the order of `rules`.

    only: IDs or names of the rules to choose; empty for all. ignore: those of the rules to leave out. options: the
    options in auditor.toml, by rule ID. level: "exposure" if the run sends no HEAD. ledger: True if the run has a
    ledger.

    A rule is left out if auditor.toml lacks its options, if it reads the HEAD and the level is "exposure", or if it
    reads digests and there is no ledger. Raises UsageError for an unknown rule, for a rule in `only` that lacks its
    options or the ledger, and if no rule is left.
    """
    known = {rule.id for rule in rules}
    only, ignore = tuple(only), tuple(ignore)
    named = {name: rule_id(name, rules) for name in (*only, *ignore)}
    if unknown := [name for name, ident in named.items() if ident not in known]:
        raise UsageError(no_rule(unknown[0], rules))
    only, ignore = {named[name] for name in only}, {named[name] for name in ignore}
    chosen = [rule for rule in rules if (not only or rule.id in only) and rule.id not in ignore]
    if level == "exposure":
        chosen = [rule for rule in chosen if not rule.needs("head")]
    if not ledger:
        if lacking := [rule.id for rule in chosen if "digests" in rule.reads and rule.id in only]:
            raise UsageError(f"rule {lacking[0]} compares with a ledger: add --ledger sqlite:PATH")
        chosen = [rule for rule in chosen if "digests" not in rule.reads]
    ready = [rule for rule in chosen if set(rule.options) <= set(options.get(rule.id, {}))]
    if missing := [rule for rule in chosen if rule not in ready and rule.id in only]:
        first = missing[0]
        raise UsageError(
            f"rule {first.id} needs its options: add [rules.{first.id}] with {', '.join(first.options)} to auditor.toml"
        )
    if not ready:
        raise UsageError("no rule is selected: loosen --only or --ignore")
    return tuple(ready)


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
        now: datetime | None = None,
    ) -> None:
        self._facts = facts
        self._versions = versions
        self._verdicts = VerdictJudge(facts, trusted, versions, now)
        trust = self._verdicts.trust
        run_facts: dict[str, Any] = {"trusted": trusted, "trust": trust, "now": now or Skipped("no time is given")}
        read = {name for rule in plan.bucket_rules for name in rule.reads}
        costly: Mapping[str, Callable[..., Any]] = {"control": control_of, "write_grants": write_grants}
        run_facts |= {name: find(facts, trust, now) for name, find in costly.items() if name in read}
        ready = [
            BoundRule.of(order, rule, facts, run_facts, (options or {}).get(rule.id, {}))
            for order, rule in enumerate((*plan.bucket_rules, *plan.object_rules))
        ]
        ready = [one for one in ready if one.applies]
        self._of_bucket = [one for one in ready if not one.places]
        self._shared = [one for one in ready if one.places and one.shared]
        rest = [one for one in ready if one.places and not one.shared]
        self._own = [one for one in rest if not one.on_exposed and not one.on_dormant]
        self._on_dormant = [one for one in rest if one.on_dormant and not one.on_exposed]
        self._on_exposed = [one for one in rest if one.on_exposed]
        self._own_parts = any(name.startswith("head.") for one in rest if not one.on_exposed for _, name in one.places)
        self._shown_names = tuple(sorted({name for one in ready for _, name in one.places if name.startswith("head.")}))
        self._shown_members = [name.removeprefix("head.") for name in self._shown_names]
        self._cached = lru_cache(CACHED_ANSWERS)(self._ask_shared)

    @property
    def trust(self) -> Trust:
        """The entries of `trusted`, with a note of each that trusted something so far."""
        return self._verdicts.trust

    @property
    def is_large(self) -> bool:
        """True if the policies are so large that a person may notice the time that an object takes."""
        return self._verdicts.is_large

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
        access = self._verdicts.access(ref, acl, head, evidence.dormant)
        shown = self._shown(head) if isinstance(head, Head) else head
        answers = self._cached(acl, None if isinstance(acl, Acl) else ref.owner, shown)
        whole = KNOWN_IN_PART if type(head) is PartialHead else head
        dormant = _NO_DORMANT if evidence.dormant is None else evidence.dormant.acl
        facts = {
            "ref": ref,
            "acl": acl,
            "head": whole,
            "owner": evidence.owner,
            "digests": evidence.digests,
            "dormant": dormant,
        }
        perhaps_exposed = self._on_exposed and access.verdict in _PERHAPS_EXPOSED
        if self._own_parts or perhaps_exposed:
            facts.update(self._head_facts(shown))
        own = [answer for one in self._own if (answer := one.ask(facts))]
        if evidence.dormant is not None:
            own += [answer for one in self._on_dormant if (answer := one.ask(facts))]
        if perhaps_exposed:
            own += self._ask_on_exposed(access, facts)
        if own:
            answers = sorted((*answers, *own))
        if not answers:
            return Judgement(evidence, access, (), ())
        findings = tuple(self._findings(answers, ref.key, ref.version_id))
        undecided = tuple(answer.rule.id for answer in answers if answer.hits is None and answer.stored)
        lacking = ((answer.rule.id, answer.lacking) for answer in answers if answer.lacking)
        unanswered = tuple(RuleUndecided(rule, fact.action, fact.code) for rule, fact in lacking)
        unstored = tuple(answer.rule.id for answer in answers if not answer.stored)
        return Judgement(evidence, access, findings, undecided, unanswered, unstored)

    def _ask_shared(
        self, acl: Acl | Unread | Skipped, listed_owner: str | None, shown: tuple[Any, ...] | Unread | Skipped
    ) -> Sequence[RuleAnswer]:
        """Return the answers of the rules that read only facts of an object that many objects have in common.

        listed_owner: the owner in the listing's entry; None if the ACL was read, or if the entry names no owner. shown:
        the members of HEAD that these rules read.
        """
        owner = acl.owner if isinstance(acl, Acl) else acl if listed_owner is None else listed_owner
        facts = {"acl": acl, "owner": owner, **self._head_facts(shown)}
        return tuple(answer for one in self._shared if (answer := one.ask(facts)))

    def _ask_on_exposed(self, access: ObjectAccess, facts: dict[str, Any]) -> list[RuleAnswer]:
        """Return the answers of the rules on exposed objects, for an object that is exposed, or perhaps is."""
        facts["access"] = access
        known = access.verdict is Verdict.EXPOSED
        asked = (one.ask(facts) if known else one.ask_unknown(facts) for one in self._on_exposed)
        return [answer for answer in asked if answer]

    def _shown(self, head: Head) -> tuple[Any, ...]:
        """Return the members of HEAD that rules name one by one. One that a partial HEAD lacks is KNOWN_IN_PART."""
        if type(head) is not PartialHead:
            return tuple(map(getattr, repeat(head), self._shown_members))
        return tuple([KNOWN_IN_PART if name in head.unread else getattr(head, name) for name in self._shown_members])

    def _head_facts(self, shown: tuple[Any, ...] | Unread | Skipped) -> dict[str, Any]:
        if isinstance(shown, tuple):
            return dict(zip(self._shown_names, shown, strict=True))
        facts: dict[str, Any] = dict.fromkeys(self._shown_names, shown)
        if shown == CUSTOMER_KEY:
            facts["head.sse_customer_algorithm"] = CUSTOMER_ALGORITHM
        return facts

    def _findings(self, answers: Iterable[RuleAnswer], key: str | None, version_id: str | None) -> list[Finding]:
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
            for _, rule, hits, *_ in answers
            for hit in hits or ()
        ]


_PERHAPS_EXPOSED: Final = frozenset({Verdict.EXPOSED, Verdict.UNKNOWN})


def judge(
    evidence: Evidence,
    bucket: BucketFacts,
    *,
    rules: Iterable[str] = (),
    trusted: Iterable[str] = (),
    options: Mapping[str, Mapping[str, Any]] | None = None,
    now: datetime | None = None,
) -> Judgement:
    """Judge one object by its facts, without any call: return its findings, its undecided rules and its verdict.

    rules: IDs of the rules to judge; empty for all rules. trusted: canonical IDs, account numbers or policy principals
    that count as insiders. options: the options of each rule, by its ID, as in auditor.toml. now: the time for rules
    that compare dates; these do not apply without it. Raises UsageError for a rule that does not exist or lacks its
    options.
    """
    given = options or {}
    plan = make_plan(select(RULES, given, rules, (), ledger=not isinstance(evidence.digests, Skipped)), bucket)
    found = Judge(plan, bucket, trusted=frozenset(trusted), options=given, now=now).object(evidence)
    lacking = (one.rule for one in plan.undecided)
    return replace(found, undecided=(*lacking, *found.undecided))
