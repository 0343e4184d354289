"""Compile the policies of one bucket, and list its requesters, once for all objects of the bucket.

Each access point is a place from which requests come, with a policy of its own. It matters only if a condition tests
the access point of a request. Else a requester of another account needs no access point: the bucket policy lets him
in, or keeps him out, without one. The bucket's tags count in conditions where attribute-based access control is on.
Source: S3 user guide, "Enabling ABAC in general purpose buckets"; IAM user guide, aws:ResourceTag.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache, partial
from itertools import product
from typing import Final, NamedTuple

from msgspec.structs import replace

from auditor.model.access import AudienceKind, Reason, ReasonCode
from auditor.model.bucket import AccessGrants, AccessPoint, BucketFacts, Semantics
from auditor.model.object import Skipped, Unread
from auditor.model.policy import Policy, is_bucket_tag, parse
from auditor.verdict.conditions import ConditionTest, compile_test, key_name
from auditor.verdict.distinguished import places_of
from auditor.verdict.documents import Document, Keys
from auditor.verdict.domains import ABSENT, UNKNOWN, Domain, FixedValues
from auditor.verdict.entry import Door, Gate
from auditor.verdict.identities import Situation
from auditor.verdict.named import POINT_KEYS, Names
from auditor.verdict.object_facts import GrantsOfBucket
from auditor.verdict.places import INTERNET, Doubt, Place
from auditor.verdict.principals import Party, account_in, is_account
from auditor.verdict.public import is_public
from auditor.verdict.requesters import Requesters
from auditor.verdict.resources import KeyClass
from auditor.verdict.steps import Steps
from auditor.verdict.trust import Trust
from auditor.verdict.ways import DECRYPT

Condition = tuple[str, str, tuple[str, ...]]
"""Operator, key and values."""

_OF_REQUESTER: Final = re.compile(r"\$\{\s*(aws:principaltag/[^\s,'{}]+)\s*\}", re.IGNORECASE)
_TURNED: Final = {
    "stringequals": "StringEquals",
    "stringlike": "StringEquals",
    "stringnotequals": "StringNotEquals",
    "stringnotlike": "StringNotEquals",
}

STEPS_OF_PAIR: Final = 5
"""Steps to make the place of an access point to which requests come from a named place."""
_FOR_EVERYONE: Final = '{"Statement": {"Effect": "Allow", "Principal": "*", "Action": "*", "Resource": "*"}}'

MOST_REMEMBERED: Final = 10_000
"""Largest number of values of policy variables for which Representatives caches an answer."""

_OF_ACCOUNTS: Final = frozenset({"aws:principalaccount", "aws:principalarn", "aws:userid", "kms:calleraccount"})
"""Condition keys that tell the account of a requester. If a policy has a policy variable on one of these keys, each
account that it names only by a principal is tried as a requester of its own."""


def tag_domain(facts: BucketFacts, key: str) -> Domain:
    """Return the domain of a condition key on a tag of the bucket. The keys of tags are case-sensitive in s3:BucketTag,
    and not in aws:ResourceTag.
    """
    if facts.abac is False:
        return ABSENT
    if facts.abac is not True or not isinstance(facts.tags, Mapping):
        return UNKNOWN
    _, _, name = key.partition("/")
    exact = key.lower().startswith("s3:")
    alike = {tag: value for tag, value in facts.tags.items() if tag.lower() == name.lower()}
    values = {value for tag, value in alike.items() if value is not None and (tag == name or not exact)}
    return UNKNOWN if not alike or len(values) > 1 else FixedValues(tuple(values))


def with_known_tags(policy: Policy, facts: BucketFacts) -> Policy:
    """Return the policy, in which each condition that compares a tag of the bucket with the same requester's tag asks
    for the requester's tag. Other conditions on that tag then count together with it.
    """
    if not policy.variables:
        return policy
    return replace(
        policy,
        statements=tuple(
            replace(one, conditions=tuple(_turned(condition, facts) for condition in one.conditions))
            for one in policy.statements
        ),
    )


def _turned(condition: Condition, facts: BucketFacts) -> Condition:
    operator, key, values = condition
    turned = _TURNED.get(operator.lower().removesuffix("ifexists"))
    variable = _OF_REQUESTER.fullmatch(values[0]) if len(values) == 1 and is_bucket_tag(key) else None
    if turned is None or variable is None:
        return condition
    domain = tag_domain(facts, key)
    if not isinstance(domain, FixedValues) or not domain.values or "$" in domain.values[0]:
        return condition
    return turned, variable[1], domain.values


class PointOfBucket(NamedTuple):
    """One access point of the bucket. document: its policy; None if it was not read, or is malformed. cut: True if the
    access point's own RestrictPublicBuckets keeps out every account but its own.
    """

    place: Place
    document: Document | None
    cut: bool = False


def points_of(facts: BucketFacts, own: str | None, keys: Keys, names: Names) -> list[PointOfBucket]:
    """Return the access points that conditions can test for. own: number of the bucket owner's account, if known."""
    if names.keys.isdisjoint(POINT_KEYS):
        return []
    found = [PointOfBucket(place, None) for place in _named(names, own, read=isinstance(facts.access_points, tuple))]
    points = facts.access_points
    if isinstance(points, tuple):
        found += [_read(point, keys, names) for point in points]
    else:
        anywhere = (f"arn:*:s3:*:{own or '############'}:accesspoint/*", own)
        unnamed = [f"arn:*:s3:*:{account}:accesspoint/*" for account in names.point_accounts if own is None]
        named = [(text, account_in(text)) for text in (*names.points, *unnamed)]
        named = [(text, account) for text, account in named if account is not None and own in (None, account)]
        for text, account in (anywhere, *named):
            place = Place(point=text, point_account=account, own_point=True, doubt=Doubt.OWN_POINTS)
            found.append(PointOfBucket(place, None))
    return found


def _named(names: Names, own: str | None, *, read: bool) -> Iterator[Place]:
    """Yield the access points of other accounts: those that the policy names, and one that any stranger can make. read:
    True if the bucket's own access points were read.
    """
    anywhere = "arn:*:s3:*:############:accesspoint/*"
    for text in names.points:
        account = account_in(text)
        if account is not None and account != own:
            yield Place(AudienceKind.ACCESS_POINT, text, point=text, point_account=account)
    for account in names.point_accounts:
        if account != own:
            text = f"arn:*:s3:*:{account}:accesspoint/*"
            yield Place(AudienceKind.ACCESS_POINT, text, point=text, point_account=account)
    # A value that names no account holds for an access point of any account.
    sure = names.any_point or (read and "s3:accesspointnetworkorigin" not in names.keys)
    doubt = None if sure else Doubt.FOREIGN_POINTS
    yield Place(point=anywhere, own_point=True, doubt=doubt)


def through_places(points: Sequence[PointOfBucket], places: Sequence[Place], steps: Steps) -> Iterator[PointOfBucket]:
    """Yield the access points again, for each named place from which requests come to them. places: the named places, a
    VPC of the requester's own, and the internet.
    """
    elsewhere = [there for there in places if there != INTERNET]
    for own in (True, False):
        some = (one for one in points if _is_own(one) == own)
        for one, there in product(some, elsewhere):
            steps.spend(STEPS_OF_PAIR)
            point = one.place
            if point.private and (there.network is not None or there.vpc not in (None, point.vpc)):
                continue  # it takes requests from its VPC only
            yield one._replace(
                place=replace(
                    there,
                    kind=point.kind or there.kind,
                    name=point.name or there.name,
                    vpc=point.vpc or there.vpc,
                    point=point.point,
                    point_account=point.point_account,
                    own_point=point.own_point,
                    doubt=point.doubt,
                    via=None if own or point.kind is None else there.text,
                    behind=there,
                )
            )


def _is_own(one: PointOfBucket) -> bool:
    """True for an access point of the bucket owner's account, whether it was read or not."""
    return one.document is not None or one.place.doubt is Doubt.OWN_POINTS


def _read(point: AccessPoint, keys: Keys, names: Names) -> PointOfBucket:
    policy = read_policy(point.policy)
    place = Place(
        AudienceKind.ACCESS_POINT,
        point.arn,
        private=point.vpc is not None,
        vpc=point.vpc,
        point=point.arn,
        point_account=point.account,
        own_point=point.vpc is None,
        doubt=Doubt.OWN_POINTS if policy is None else None,
    )
    block = point.public_access_block
    restricted = not isinstance(block, Unread) and block.restrict_public_buckets
    public = point.policy_is_public if isinstance(point.policy_is_public, bool) else None
    if policy is None and restricted and public:
        policy = parse(_FOR_EVERYONE)  # whatever it says, it is public
        place = replace(place, doubt=None)
    if policy is None:
        return PointOfBucket(place, None)
    cut = restricted and (is_public(policy, semantics=Semantics.AWS) if public is None else public)
    start = f"{point.arn}/object/"
    return PointOfBucket(place, Document(policy, keys, names, start=start, whole_arns=True, of="access-point"), cut)


def read_policy(text: object) -> Policy | None:
    """Return the parsed policy; None if its text was not read, or is malformed."""
    try:
        return parse(text) if isinstance(text, str) else None
    except ValueError:
        return None


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
