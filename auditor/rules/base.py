"""The types of rules, and the plan that says, from the bucket's facts, which rules a run judges and which calls it
makes for each object.

A rule is a pure function that takes the facts which it declares, and yields its hits.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, field

from auditor.model.bucket import BUCKET_OWNER_ENFORCED, BucketFacts
from auditor.model.finding import RuleUndecided
from auditor.model.finding import Severity as Severity
from auditor.model.object import ENCRYPTION, GROUP_OF, GROUPS, Ask, Skipped, Unread

SHARED_HEAD: Final = (
    "object_lock_event_hold",
    "object_lock_mode",
    "replication_status",
    "server_side_encryption",
    "sse_customer_algorithm",
    "sse_kms_key_id",
    "website_redirect_location",
)
"""Members of HEAD that many objects have in common. A rule that names them one by one, such as `head.object_lock_mode`,
runs once for all objects that are alike in them; a rule that reads `head` runs for each object.
"""

OBJECT_FACTS: Final = frozenset(
    {"ref", "acl", "head", "owner", "digests", "access", "dormant", *(f"head.{name}" for name in SHARED_HEAD)}
)
RUN_FACTS: Final = frozenset({"trusted", "trust", "now", "control", "write_grants"})
"""The facts of a run that are not the bucket's: they are the same for every object."""

BUCKET_FACTS: Final = frozenset(
    f"bucket.{name}"
    for name in (
        "owner",
        "owner_account",
        "ownership",
        "access_block",
        "acl",
        "policy_status",
        "parsed_policy",
        "restricts_public_policy",
        "semantics",
        "default_encryption",
    )
)

SECTIONS: Final = ("Why", "Flagged", "Not flagged", "Blind to", "Fix")

NOT_NEEDED = "no selected rule needs it"
ACLS_DISABLED = "ACLs are disabled (BucketOwnerEnforced)"


class Hit(Struct, frozen=True):
    """One violation that a rule's check found; the judge makes a Finding of it. severity: None for the rule's own."""

    message: str
    grantee: str | None = None
    permission: str | None = None
    severity: Severity | None = None


Check = Callable[..., Iterator[Hit | Unread]]
"""A check yields its hits. It yields an Unread in place of them if S3 may have left the deciding fact out of an answer:
the rule is then undecided for the object.
"""
Validate = Callable[[Mapping[str, Any]], None]


class Rule(Struct, frozen=True):
    """A rule: its check function, its ID and severity, and the names of the facts that the check reads.

    The names of facts: `ref`, the object's entry in the listing; `acl`; `head`; `head.X`, member X of HEAD, one of
    SHARED_HEAD; `owner`, the canonical ID of the object's owner; `access`, see below; `digests`, which exist in a run
    with a ledger; `dormant`, the hidden part of the stored ACL, where an S3 Inventory shows one; `bucket.X`, attribute
    X of BucketFacts; `trusted`, the frozenset of trusted entries; `trust`, the Trust in them; `now`, the time at which
    the run began; `control`, the Control over the bucket that its policy gives; `write_grants`, the S3 Access Grants by
    which outsiders may write; `config.X`, option X of [rules.ID] in
    auditor.toml. A run selects the rule only if auditor.toml has all its options.

    A rule that reads `access`, an ObjectAccess, asks for exposed objects only: the judge does not ask it about others.
    For an object with the verdict `unknown` it is undecided, if it would flag the object once that is exposed.

    S3 refuses a HEAD without the customer's key (SSE-C). `head.sse_customer_algorithm` is known all the same then.
    """

    id: str
    """An ID such as O02. An ID never changes its meaning and is never used for a second rule."""
    name: str
    """The rule's short name in kebab-case, such as acl-everyone-read."""
    severity: Severity
    reads: tuple[str, ...]
    """The facts that `check` takes, in the order of its parameters."""
    check: Check
    options: Mapping[str, Any] = field(default_factory=dict)
    """The name of each option, and the type that its value in auditor.toml must have; config/toml_tables reads it."""
    validate: Validate | None = None
    """A function that takes the options, and raises ValueError, with one phrase for the user, if one of them has the
    right type and an invalid value. None if the right types are enough.
    """
    values: bool = False
    """True if the check reads values of user metadata. A run folder has these values only if the setting keep_metadata
    is on."""
    head: tuple[str, ...] = ()
    """For a check that takes the whole HEAD, the groups of its members (model.object) that it reads."""

    @property
    def head_groups(self) -> frozenset[str]:
        """The groups of members of the HEAD that the check reads; all if it takes the whole HEAD and names none."""
        if "head" in self.reads and not self.head:
            return frozenset(GROUPS)
        members = (name.removeprefix("head.") for name in self.reads if name.startswith("head."))
        return frozenset((*self.head, *(GROUP_OF[member] for member in members)))

    def needs(self, fact: str) -> bool:
        """True if the check reads the fact, or a member of it: `head` is needed for `head.object_lock_mode` too, and
        `acl` for `access`.
        """
        parts = {name.partition(".")[0] for name in self.reads if name in OBJECT_FACTS}
        return fact in parts or (fact == "acl" and "access" in parts)

    @property
    def per_object(self) -> bool:
        """True if the rule is judged for each object; False if it is judged once, for the bucket."""
        return bool(OBJECT_FACTS.intersection(self.reads))

    @property
    def doc(self) -> str:
        """The docstring of the rule's check. The sections begin with Why, Flagged, Not flagged, Blind to and Fix."""
        return inspect.getdoc(self.check) or ""

    @property
    def title(self) -> str:
        """The first line of the rule's module without the ID: "anyone on the internet can read the object"."""
        module = inspect.getmodule(self.check)
        first = (inspect.getdoc(module) or "").partition("\n")[0]
        return first.partition(": ")[2].rstrip(".")


def rule(
    id: str,  # noqa: A002 - the field is called "id"
    name: str,
    severity: Severity,
    *,
    reads: tuple[str, ...],
    options: Mapping[str, Any] | None = None,
    validate: Validate | None = None,
    values: bool = False,
    head: tuple[str, ...] = (),
) -> Callable[[Check], Rule]:
    """Return a decorator that makes a Rule of a check function. reads: the facts for the check's parameters, in their
    order. values: True if the check reads values of user metadata. head: the groups of members that a check reads which
    takes the whole HEAD. The decorator raises TypeError for an unknown fact or group, if `head` is given for no HEAD or
    is missing, and if the check has not one parameter for each fact.
    """
    declared = options or {}

    def wrap(check: Check) -> Rule:
        known = OBJECT_FACTS | BUCKET_FACTS | RUN_FACTS | {f"config.{option}" for option in declared}
        if unknown := set(reads) - known:
            raise TypeError(f"{id} reads unknown facts: {sorted(unknown)}")
        if bool(head) != ("head" in reads) or not set(head) <= GROUPS.keys():
            raise TypeError(f"{id} must name the groups of members that it reads of the HEAD: some of {list(GROUPS)}")
        parameters: Mapping[str, Any] = inspect.signature(check).parameters
        if len(parameters) != len(reads):
            raise TypeError(f"{id} reads {len(reads)} facts but its check takes {len(parameters)}")
        return Rule(id, name, severity, reads, check, declared, validate, values, head)

    return wrap


def bucket_fact(facts: BucketFacts, name: str) -> Any:
    """Return the attribute of the bucket's facts that a rule names in its `reads`, such as `bucket.owner`."""
    return getattr(facts, name.removeprefix("bucket."))


class Plan(Struct, frozen=True):
    """The plan of a run: the rules to judge, the rules that stay undecided for lack of a bucket fact, and the calls for
    each object.
    """

    bucket_rules: tuple[Rule, ...]
    object_rules: tuple[Rule, ...]
    undecided: tuple[RuleUndecided, ...]
    ask: Ask


def make_plan(rules: Sequence[Rule], facts: BucketFacts) -> Plan:
    """Plan a run. A rule is undecided if it needs a bucket fact that could not be read, left out if one was skipped.

    With BucketOwnerEnforced, rules that read ACLs or owners are left out too: S3 ignores grants, and the bucket's owner
    owns every object.
    """
    ready: list[Rule] = []
    undecided: list[RuleUndecided] = []
    for rule in rules:
        needed = [bucket_fact(facts, name) for name in rule.reads if name.startswith("bucket.")]
        if "control" in rule.reads:
            needed.append(facts.parsed_policy)
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
        Ask(acl, head, acl_for_owner=not enforced and any("owner" in rule.reads for rule in ready)),
    )


def _needs(rules: Sequence[Rule], fact: str) -> Skipped | None:
    return None if any(rule.needs(fact) for rule in rules) else Skipped(NOT_NEEDED)


def judges_values(plan: Plan) -> bool:
    """True if a rule judges values of user metadata, which a run folder need not have."""
    return any(rule.values for rule in plan.object_rules)


def head_groups(plan: Plan) -> frozenset[str]:
    """Return the groups of members of the HEAD that the rules read, and the encryption, which decides on verdicts."""
    return frozenset({ENCRYPTION}).union(*(rule.head_groups for rule in plan.object_rules))
