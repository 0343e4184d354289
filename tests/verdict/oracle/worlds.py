"""Complete the facts of a bucket and an object: one World for each way in which the unknown may be."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from auditor.model.bucket import BUCKET_OWNER_ENFORCED, AccessPoint, BucketFacts, PublicAccessBlock
from auditor.model.object import ALL_USERS, ANONYMOUS_OWNER, Acl, Head, ObjectRef, Skipped, Unread
from tests.verdict.oracle.candidates import FRESH_TEXT, instances, of_any_kind
from tests.verdict.oracle.conditions import ANY_TEXT, Values, holds, variables
from tests.verdict.oracle.identities import FRESH_ACCOUNT
from tests.verdict.oracle.names import Named, named
from tests.verdict.oracle.public import is_public
from tests.verdict.oracle.service import BY_KEY, BY_VERSION, OF_PERMISSION, Point, World
from tests.verdict.oracle.statements import Rule, Test, read

NOW: Final = "2026-07-01T12:00:00Z"
_NOW_IN_SECONDS: Final = "1782907200"
_OWN_FRESH: Final = "000011112222"
_UNREAD_OWNER: Final = "?"
"""Stands for the canonical ID of another account that an ACL may name."""
_OWNER_FRESH: Final = "e" * 64
_ALLOW_ALL: Final = '{"Statement": {"Effect": "Allow", "Principal": "*", "Action": "*", "Resource": "*"}}'
_ALLOW_ONE: Final = _ALLOW_ALL.replace('"*"', f'{{"AWS": "{FRESH_ACCOUNT[:-1]}2"}}', 1)

CONDITIONAL: Final = ("s3:if-match", "s3:if-none-match")
"""The headers of conditional requests. Only those that read bytes have them."""
CHOSEN: Final = ("aws:referer", "aws:useragent", *CONDITIONAL)
"""The headers that anyone chooses."""
CHOSEN_IF_SIGNED: Final = ("aws:username", "aws:userid")
OF_REQUESTERS: Final = frozenset(
    {
        *CHOSEN,
        *CHOSEN_IF_SIGNED,
        *("aws:principalarn", "aws:principalaccount", "aws:principalorgid", "aws:principalorgpaths"),
        *("aws:multifactorauthpresent", "s3:max-keys", "s3:x-amz-server-side-encryption"),
        *("aws:principaltype", "aws:principalisawsservice", "aws:principalservicename"),
        *("aws:principalservicenameslist", "aws:viaawsservice", "aws:calledvia", "aws:calledviafirst"),
        *("aws:sourcevpcarn", "aws:vpceaccount", "aws:vpceorgid", "aws:vpceorgpaths", "s3:accessgrantsinstancearn"),
        *("aws:calledvialast", "aws:sourceip", "aws:vpcsourceip", "aws:sourcevpc", "aws:sourcevpce"),
        *("aws:sourcearn", "aws:sourceaccount", "aws:sourceowner", "aws:sourceorgid", "aws:sourceorgpaths"),
        *("aws:securetransport", "s3:tlsversion", "s3:versionid", "s3:authtype", "s3:signatureage"),
        *("s3:dataaccesspointarn", "s3:dataaccesspointaccount", "s3:accesspointnetworkorigin"),
        *("aws:currenttime", "aws:epochtime", "s3:resourceaccount", "aws:resourceaccount", "no"),
    }
)
"""The keys whose values follow from requester, request or bucket. The value of any other key is not known."""


@dataclass(frozen=True)
class Case:
    """The facts of one bucket and one object, as an audit has them."""

    facts: BucketFacts
    acl: Acl | Unread | Skipped
    head: Head | Unread | Skipped
    ref: ObjectRef
    trusted: tuple[str, ...] = ()
    versions: bool = False


@dataclass
class Completed:
    """One world, with the names in it. unique_ids: those in the policies that belong to principals of others."""

    world: World
    names: Named
    unique_ids: tuple[str, ...] = ()


def worlds(case: Case) -> Iterator[Completed]:
    """Return each world in which the facts of the case may hold."""
    facts = case.facts
    for rules, acls in itertools.product(_policies(facts), _ownerships(case)):
        for owner, (object_owner, grants) in itertools.product(_owners(case, rules), _acls(case, acls=acls)):
            grantees = (
                [object_owner or owner, *(grantee for grantee, permission in grants if OF_PERMISSION[permission])]
                if acls
                else []
            )
            if rules and acls and not _is_read(facts) and object_owner not in (None, owner):
                continue  # a policy allows nothing on an object of another owner: it might as well be empty
            for account in _accounts(case, rules, owner):
                for points in _points(case, rules, account):
                    world = _world(case, rules, owner, account, object_owner or owner, grants, points, acls)
                    for bare in _bare(world):
                        yield from _with_keys(replace(world, bare_reads=bare), grantees, case.facts)


def _bare(world: World) -> list[bool]:
    """Return if Denies see the headers of conditional reads, which may be either way."""
    every = (*world.rules, *(rule for point in world.points for rule in point.rules), *(world.key_rules or ()))
    asks = any(test.key in CONDITIONAL for rule in every if not rule.allows for test in rule.tests)
    return [False, True] if asks else [False]


def _is_read(facts: BucketFacts) -> bool:
    return len(_policies(facts)) == 1


def _policies(facts: BucketFacts) -> list[tuple[Rule, ...]]:
    """Return the policies that the bucket may have. A policy that cannot be parsed counts as not read."""
    if isinstance(facts.policy, str):
        try:
            return [read(facts.policy)]
        except (ValueError, KeyError, TypeError, AttributeError):
            pass
    return [(), read(_ALLOW_ALL), read(_ALLOW_ONE)]


def _ownerships(case: Case) -> list[bool]:
    """Return if ACLs count, which may be either way if neither the setting nor the ACL was read. An ACL that was read
    shows that they do, or has no grant of others.
    """
    if isinstance(case.facts.ownership, str):
        return [case.facts.ownership != BUCKET_OWNER_ENFORCED]
    return [True] if isinstance(case.acl, Acl) else [True, False]


def _world(
    case: Case,
    rules: tuple[Rule, ...],
    owner: str,
    account: str,
    object_owner: str,
    grants: tuple[tuple[str, str], ...],
    points: tuple[Point, ...],
    acls: bool,
) -> World:
    facts = case.facts
    public = facts.policy_is_public if isinstance(facts.policy_is_public, bool) else is_public(rules)
    encryption, key_rules = _encryption(case)
    return World(
        bucket_owner=owner,
        account=account,
        object_owner=object_owner,
        grants=grants,
        acls=acls,
        ignores_public_acls=_switch(facts, "ignore_public_acls"),
        cut=_switch(facts, "restrict_public_buckets") and public and _is_read(facts),
        only_named=facts.policy_is_public is False,
        rules=rules,
        requester_pays=facts.request_payer == "Requester",
        encryption=encryption,
        key_rules=key_rules,
        region=facts.region if isinstance(facts.region, str) else "eu-central-1",
        resource=f"arn:aws:s3:::{facts.bucket}/{case.ref.key}",
        points=points,
        keys={},
        truth={},
    )


def _switch(facts: BucketFacts, name: str) -> bool:
    levels = (facts.public_access_block, facts.account_public_access_block)
    return any(isinstance(level, PublicAccessBlock) and getattr(level, name) for level in levels)


def _encryption(case: Case) -> tuple[str | None, tuple[Rule, ...] | None]:
    head = case.head
    if isinstance(head, Unread):
        return ("SSE-C" if head.code == "SSE-C" else None), None
    if isinstance(head, Skipped):
        return None, None
    if head.sse_customer_algorithm is not None:
        return "SSE-C", None
    if not (head.server_side_encryption or "").startswith("aws:kms"):
        return None, None
    policies: Mapping[str, Any] = {} if isinstance(case.facts.key_policies, Skipped) else case.facts.key_policies
    text = policies.get(head.sse_kms_key_id or "")
    return "aws:kms", read(text) if isinstance(text, str) else None


def _owners(case: Case, rules: tuple[Rule, ...]) -> list[str]:
    """Return the canonical IDs that the bucket's owner may have."""
    if isinstance(case.facts.owner, str):
        return [case.facts.owner]
    found = [_OWNER_FRESH]
    if isinstance(case.acl, Acl):
        found += [case.acl.owner, *(grant.grantee for grant in case.acl.grants if "://" not in grant.grantee)]
    found += [owner for owner in (case.ref.owner, case.facts.own_id) if isinstance(owner, str)]
    found += [value for rule in rules for kind, value in rule.principals if kind == "CanonicalUser"]
    return [owner for owner in dict.fromkeys(found) if owner and owner != ANONYMOUS_OWNER]


def _acls(case: Case, *, acls: bool) -> list[tuple[str | None, tuple[tuple[str, str], ...]]]:
    """Return the owner of the object, None for the bucket's, and the grants to others than the owner."""
    if not acls:
        return [(None, ())]
    if isinstance(case.acl, Acl):
        grants = tuple((grant.grantee, grant.permission) for grant in case.acl.grants)
        if owner := case.acl.owner or case.ref.owner:
            return [(owner, grants)]
        return [(None, grants), (_UNREAD_OWNER, grants)]
    stranger = _UNREAD_OWNER
    listed = case.ref.owner
    found: list[tuple[str | None, tuple[tuple[str, str], ...]]] = [
        (listed, ()),
        (listed, ((ALL_USERS, "FULL_CONTROL"),)),
        (listed, ((stranger, "FULL_CONTROL"),)),
    ]
    return found if listed else [*found, (_UNREAD_OWNER, ())]


def _accounts(case: Case, rules: tuple[Rule, ...], owner: str) -> list[str]:
    """Return the numbers that the account of the bucket's owner may have."""
    facts = case.facts
    caller = facts.account if isinstance(facts.account, str) else None
    if isinstance(facts.owner, str) and facts.own_id == facts.owner and caller is not None:
        return [caller]
    names = named([*rules, *(_encryption(case)[1] or ())], ())
    found = [
        _OWN_FRESH,
        *names.accounts,
        *names.exact("aws:sourceaccount", "s3:resourceaccount", "aws:resourceaccount"),
    ]
    arns = [*names.principals, *names.arn_patterns]
    found += [arn.split(":")[4] for arn in arns if arn.count(":") > 4 and arn.split(":")[4].isdigit()]
    return list(dict.fromkeys([*found, *([caller] if caller else [])]))


def _points(case: Case, rules: tuple[Rule, ...], account: str) -> list[tuple[Point, ...]]:
    """Return the access points that the bucket may have in its own account."""
    tests = [
        test for rule in rules for test in rule.tests if test.key.startswith(("s3:dataaccesspoint", "s3:accesspoint"))
    ]
    if not tests:
        return [()]
    listed = case.facts.access_points
    everyone = read(_ALLOW_ALL)
    if not isinstance(listed, tuple):
        region = case.facts.region if isinstance(case.facts.region, str) else "eu-central-1"
        # The second is that of a Multi-Region Access Point, whose ARN has no region.
        arns = [f"arn:aws:s3:{region}:{account}:accesspoint/zz", f"arn:aws:s3::{account}:accesspoint/zz.mrap"]
        for test in tests:
            if test.key == "s3:dataaccesspointarn":
                for text in test.values:
                    arns += instances(text, ("q", account, region))
        own = [arn for arn in dict.fromkeys(arns) if arn.split(":")[4:5] == [account]]
        return [(), *((Point(arn, account, None, everyone, listed=False),) for arn in own)]
    choices = [
        [_point(point, everyone), None] if isinstance(point.policy, Unread) else [_point(point, everyone)]
        for point in listed
    ]
    return [tuple(point for point in choice if point is not None) for choice in itertools.product(*choices)]


def _point(point: AccessPoint, everyone: tuple[Rule, ...]) -> Point:
    block = point.public_access_block
    rules = read(point.policy) if isinstance(point.policy, str) else everyone
    public = point.policy_is_public if isinstance(point.policy_is_public, bool) else is_public(rules)
    cut = isinstance(block, PublicAccessBlock) and block.restrict_public_buckets and public
    return Point(point.arn, point.account, point.vpc, rules, cut)


def _with_keys(world: World, grantees: list[str], facts: BucketFacts) -> Iterator[Completed]:
    """Return the world once for each way in which unknown keys and operators may come out."""
    every = (*world.rules, *(rule for point in world.points for rule in point.rules), *(world.key_rules or ()))
    names = named([rule for rule in every if _matters(rule)], grantees)
    if _ENDPOINT in names.tests:
        here = [test for rule in every if not _is_elsewhere(rule, world) for test in rule.tests]
        names.tests[_ENDPOINT] = [test for test in names.tests[_ENDPOINT] if test in here]
    tests = [test for rule in every for test in rule.tests]
    asked = dict.fromkeys(key for test in tests for key in test.keys)
    unknown = [key for key in asked if not (key in OF_REQUESTERS or key.startswith(("aws:principaltag/", "kms:")))]
    fixed: dict[str, Values] = {
        "s3:resourceaccount": (world.account,),
        "aws:resourceaccount": (world.account,),
        "aws:currenttime": (NOW,),
        "aws:epochtime": (_NOW_IN_SECONDS,),
    }
    if "aws:requestedregion" in unknown:
        unknown.remove("aws:requestedregion")
        fixed["aws:requestedregion"] = (world.region,)
    for key in [key for key in unknown if _is_tag(key)]:
        if facts.abac is False:
            fixed[key] = None
        elif facts.abac is True and isinstance(facts.tags, Mapping):
            value = facts.tags[key.partition("/")[2]]
            fixed[key] = None if value is None else (value,)
        else:
            continue
        unknown.remove(key)
    strange = [test for test in tests if not test.known]
    for values in itertools.product(*(_values(key, tests, names) for key in unknown)):
        keys = {**fixed, **dict(zip(unknown, values, strict=True))}
        organizations = names.organizations
        if "aws:resourceorgid" in asked and (organization := keys["aws:resourceorgid"]):
            organizations = {**organizations, organization[0]: None}
        for truths in itertools.product((True, False), repeat=len(strange)):
            completed = replace(world, keys=keys, truth=dict(zip(strange, truths, strict=True)))
            for unique_ids in [(), tuple(names.unique_ids)] if names.unique_ids else [()]:
                yield Completed(completed, replace(names, organizations=organizations), unique_ids)


def _is_tag(key: str) -> bool:
    """True for a tag of the bucket."""
    return key.startswith(("aws:resourcetag/", "s3:buckettag/"))


def _matters(rule: Rule) -> bool:
    """True if a statement covers an action that may reach an object: else it names nobody of interest."""
    kms = any(action.lower().startswith("kms:") for action in rule.actions)
    return kms or any(rule.covers_action(action) for action in (*BY_KEY, *BY_VERSION))


_ENDPOINT: Final = "aws:sourcevpce"
"""The key whose names are places only if a statement on the object asks for them: an endpoint is a part of its VPC."""


def _is_elsewhere(rule: Rule, world: World) -> bool:
    """True if a statement of the bucket policy does not cover the object, whoever asks."""
    asked = {key for text in rule.resources for key in variables(text)} - {"no"}
    if rule not in world.rules or (asked and rule.not_resource):
        return False
    return not rule.covers(world.resource, dict.fromkeys(asked, (ANY_TEXT,)))


def _values(key: str, tests: list[Test], names: Named) -> list[Values]:
    """Return values of an unknown key: one for each combination of answers to the conditions that ask for it."""
    asking = [test for test in tests if test.key == key and len(test.keys) == 1 and test.known]
    named_in = any(key in test.keys[1:] for test in tests)
    if not asking:
        return [None, (FRESH_TEXT,)]
    found: dict[object, Values] = {}
    for value in of_any_kind(names.values(key)):
        if _is_tag(key) and value is not None and len(value) > 1:
            continue  # a bucket has a tag once
        try:
            answers: object = tuple(holds(test.operator, test.values, value, {}) for test in asking)
        except ValueError:  # an address that is none
            continue
        found.setdefault((answers, value if named_in else None), value)
    return list(found.values())
