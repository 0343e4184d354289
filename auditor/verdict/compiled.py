"""Compile the policies of one bucket, and list its requesters, once for all objects of the bucket."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache, partial
from typing import Final

from auditor.model.access import AudienceKind, Reason, ReasonCode
from auditor.model.bucket import AccessGrants, BucketFacts, Semantics
from auditor.model.object import Skipped, Unread
from auditor.model.policy import Policy
from auditor.verdict.bucket_tags import tag_domain, with_known_tags
from auditor.verdict.conditions import ConditionTest, compile_test, key_name
from auditor.verdict.distinguished import places_of
from auditor.verdict.documents import Document, Keys
from auditor.verdict.entry import Door, Gate
from auditor.verdict.grants import GrantsOfBucket
from auditor.verdict.identities import Situation
from auditor.verdict.named import Names
from auditor.verdict.points import points_of, read_policy, through_places
from auditor.verdict.principals import Party, is_account
from auditor.verdict.public import is_public
from auditor.verdict.requesters import Requesters
from auditor.verdict.resources import KeyClass
from auditor.verdict.steps import Steps
from auditor.verdict.trust import Trust
from auditor.verdict.ways import DECRYPT

MOST_REMEMBERED: Final = 10_000
"""Largest number of values of policy variables for which Representatives caches an answer."""


_OF_ACCOUNTS: Final = frozenset({"aws:principalaccount", "aws:principalarn", "aws:userid", "kms:calleraccount"})
"""Condition keys that tell the account of a requester. If a policy has a policy variable on one of these keys, each
account that it names only by a principal is tried as a requester of its own."""


class Representatives:
    """Maps each value of a policy variable to one representative. Two values share a representative if no policy treats
    them differently, so that object keys fall into few classes.
    """

    def __init__(self, keys: Keys, names: Names, own: str | None) -> None:
        self._keys = keys
        self._special = {*names.accounts, *names.organizations, own}
        self._chosen: dict[tuple[object, ...], list[str]] = {}
        self._signature = lru_cache(MOST_REMEMBERED)(self._find_signature)

    def of(self, key: str, groups: Sequence[Sequence[str]]) -> list[set[str]]:
        """Return the representatives of each group of values. No two groups share one. key: the condition key of the
        policy variable.
        """
        alike: dict[tuple[object, ...], dict[int, None]] = {}
        own: dict[tuple[object, ...], list[str]] = {}
        for place, values in enumerate(groups):
            for value in values:
                signature = self._signature(key, value)
                alike.setdefault(signature, {})[place] = None
                own.setdefault(signature, []).append(value)
        found: list[set[str]] = [set() for _ in groups]
        for signature, places in alike.items():
            chosen = self._chosen.setdefault(signature, [])
            chosen += [value for value in own[signature] if value not in chosen][: max(0, len(places) - len(chosen))]
            for place, text in zip(places, chosen, strict=False):
                found[place].add(text)
        return found

    def _find_signature(self, key: str, value: str) -> tuple[object, ...]:
        tests = self._keys.listed[self._keys.place_of(key)].tests
        if value in self._special or any(test.variables for test in tests):
            return key, value
        outcomes = (test.outcome((value,)) for test in tests if key_name(test.key) == key)
        return key, *outcomes, is_account(value), value.startswith("o-"), value.startswith("arn:")


class CompiledBucket:
    """The facts of one bucket in compiled form: its policies, and the requesters to try.

    document: the bucket policy. keys: the condition keys of all policies, by index. own_id, own_account: canonical ID
    and number of the bucket owner's account; None if not known. unread: True if the bucket policy was not read, or is
    malformed. cut: the reason if RestrictPublicBuckets acts. steps: the number of steps that this took. Raises
    OutOfStepsError.
    """

    def __init__(self, facts: BucketFacts, trust: Trust, now: datetime | None, policy: Policy | None = None) -> None:
        self.facts = facts
        steps = Steps()
        policy = policy or read_policy(facts.policy)
        self.unread = policy is None
        policy = policy or Policy()
        self.own_id = facts.owner if isinstance(facts.owner, str) and facts.owner else None
        self.own_account = _own_account(facts)
        self.grants = GrantsOfBucket(facts, trust)
        keys, self.names = Keys(), Names()
        self.keys = keys.listed
        known = with_known_tags(policy, facts)
        self.document = Document(known, keys, self.names, start=f"{facts.bucket}/", semantics=facts.semantics)
        self.cut = _cut(facts, policy)
        if any("aws:principalaccount" in key.variables for key in self.keys):
            self.names.add_trusted(trust.accounts)  # a folder of a trusted account is not one of any account
        points = points_of(facts, self.own_account, keys, self.names)
        key_gates = self._key_policies(keys)
        places = list(places_of(self.names, facts.semantics, steps))
        points += list(through_places(points, places, steps))
        gates = {one.place: Gate(one.document, cut=one.cut) for one in points if one.document is not None}
        if any(not _OF_ACCOUNTS.isdisjoint(key.depends_on) for key in self.keys):
            self.names.add_principals([Party(AudienceKind.ACCOUNT, one, account=one) for one in self.names.accounts])
        region = facts.region if isinstance(facts.region, str) and facts.region else None
        tags = partial(tag_domain, facts)
        situation = Situation(self.names, self.own_account, region, now, facts.semantics, tags)
        self.document.coverage.representatives = Representatives(keys, self.names, self.own_account).of
        self.place_of = keys.place_of
        self.requesters = Requesters(self.keys, situation, trust, [*places, *(one.place for one in points)], steps)
        self.door = Door(facts, self.cut is not None, gates, key_gates, self.requesters.some_keys())
        self.steps = steps.spent

    def folders(self, covered: KeyClass) -> tuple[dict[int, tuple[int, int]], dict[int, list[ConditionTest]]]:
        """Return the tests that replace patterns of Resource with one policy variable, for one class of object keys.

        The first dict has, by the statement's index, the condition key's index and the test as a bit. The second dict
        has the tests themselves, by the condition key's index.
        """
        semantics = self.facts.semantics
        needs: dict[int, tuple[int, int]] = {}
        tests: dict[int, list[ConditionTest]] = {}
        for place, key, values, negated, default in covered.values:
            operator = "StringNotEquals" if negated else "StringEqualsIfExists" if default else "StringEquals"
            asked = [compile_test(operator, key, values, variables=False, semantics=semantics)]
            if negated and default:
                asked.append(compile_test("Null", key, ("false",), variables=False, semantics=semantics))
            index = self.place_of(key)
            known = tests.setdefault(index, [])
            known += [test for test in asked if test not in known]
            needs[place] = index, sum(1 << (len(self.keys[index].tests) + known.index(test)) for test in asked)
        return needs, tests

    def _key_policies(self, keys: Keys) -> dict[str, Gate]:
        """Return those policies of KMS keys that were read, as gates that a request for the object's bytes has to
        pass.
        """
        policies = self.facts.key_policies
        if isinstance(policies, Skipped):
            return {}
        read = {key: read_policy(text) for key, text in policies.items()}
        return {
            key: Gate(Document(policy, keys, self.names, start="", ways=DECRYPT, of="kms-key"), 1)
            for key, policy in read.items()
            if policy is not None
        }


def _own_account(facts: BucketFacts) -> str | None:
    """Return the number of the bucket owner's account. It is known only if the caller owns the bucket: then it is the
    caller's own number, which S3 Access Grants have, too.
    """
    if isinstance(facts.access_grants, AccessGrants) and is_account(facts.access_grants.account):
        return facts.access_grants.account
    own = isinstance(facts.owner, str) and bool(facts.owner) and facts.own_id == facts.owner
    return facts.account if own and isinstance(facts.account, str) and is_account(facts.account) else None


def _cut(facts: BucketFacts, policy: Policy) -> Reason | None:
    """Return the reason if RestrictPublicBuckets keeps out requesters that the bucket policy lets in; None if it does
    not.
    """
    if not facts.restricts_public_policy or facts.semantics is Semantics.CEPH:
        return None  # Ceph stores the switch and does not act on it (seen on RGW 16.2)
    public = facts.policy_is_public
    if facts.semantics is not Semantics.AWS or not isinstance(public, bool):
        public = is_public(policy, semantics=facts.semantics)
    return Reason(ReasonCode.RESTRICT_PUBLIC_BUCKETS, level_of(facts, "restrict_public_buckets")) if public else None


def level_of(facts: BucketFacts, switch: str) -> str:
    """Return the level at which a switch of the public access block is on: "bucket" or "account"."""
    block = facts.public_access_block
    on = not isinstance(block, Unread | Skipped) and getattr(block, switch)
    return "bucket" if on else "account"
