"""Collect the facts that are not known and on which the access to an object may depend."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any

from auditor.model.access import Reason, ReasonCode
from auditor.model.object import PUBLIC_GROUPS, Skipped, Unread
from auditor.model.policy import is_bucket_tag
from auditor.verdict.compiled import CompiledBucket
from auditor.verdict.entry import Case
from auditor.verdict.identities import CONDITIONAL
from auditor.verdict.object_facts import SOMEBODY, AclView
from auditor.verdict.places import Doubt
from auditor.verdict.principals import PUBLIC_PROVIDERS
from auditor.verdict.requesters import Requester
from auditor.verdict.worlds import Unknowns


def unknowns_of(
    bucket: CompiledBucket, case: Case, acls: Sequence[AclView], requesters: Sequence[Requester], cause: Reason
) -> tuple[Unknowns, dict[Any, Reason], set[int]]:
    """Return the facts that are not known; the reason to give for each; and the condition keys that are too complex.
    cause: the reason for an ACL that is not known.
    """
    keys, too_complex = _keys(bucket, case, requesters)
    doubts = dict.fromkeys(one.place.doubt for one in requesters if one.place.doubt is not None)
    unclear = [one for one in requesters if _is_unclear(one, bucket.own_account)]
    conditional = _conditional(bucket, case)
    unknowns = Unknowns(
        acls,
        (False, True) if bucket.unread else (False,),
        _accounts(bucket),
        _canonicals(bucket, acls, requesters),
        [some for size in range(len(doubts) + 1) for some in combinations(doubts, size)],
        (False, True) if unclear else (False,),
        (False, True) if conditional else (False,),
        keys,
        bucket.requesters.owners_truth(keys) if bucket.own_account is None else {},
    )
    points = Reason(ReasonCode.ACCESS_POINTS_UNREAD, _code(bucket.facts.access_points))
    if Doubt.OWN_POINTS not in doubts:
        points = Reason(ReasonCode.KEY_UNKNOWN, "s3:DataAccessPointArn")
    names: dict[Any, Reason] = {
        "allows_all": Reason(ReasonCode.POLICY_UNREAD, _code(bucket.facts.policy)),
        "acl": cause,
        "own_canonical": Reason(ReasonCode.OWNER_UNKNOWN),
        "own_account": Reason(ReasonCode.OWNER_UNKNOWN),
        "points": points,
        "unclear": Reason(ReasonCode.KEY_UNKNOWN, _unclear_name(unclear)),
        "bare_reads": Reason(ReasonCode.KEY_UNKNOWN, conditional),
        "high": _too_many(bucket, case, keys, too_complex),
        **{key: _unknown_key(bucket, key) for key in keys},
    }
    return unknowns, names, too_complex


def too_complex_of(case: Case) -> Reason:
    """Return the reason for conditions with too many combinations. It names the first statement with a condition."""
    names = (clause.name for clause, _ in case.covered if clause.conditional)
    return Reason(ReasonCode.TOO_COMPLEX, next(names, None))


def _too_many(bucket: CompiledBucket, case: Case, keys: Iterable[int], too_complex: set[int]) -> Reason:
    """Return the reason to give if the unknown condition keys have too many combinations. It names the first key; or a
    statement, if one key alone is too complex.
    """
    first = next(iter(keys), None)
    if too_complex or first is None:
        return too_complex_of(case)
    return Reason(ReasonCode.KEY_UNKNOWN, bucket.keys[first].spelled)


def _keys(
    bucket: CompiledBucket, case: Case, requesters: Sequence[Requester]
) -> tuple[dict[int, tuple[int, ...]], set[int]]:
    """Return the possible sets of true tests of each condition key that the world decides, and the keys that are too
    complex.
    """
    clauses = [*case.covered, *((clause, clause.needs) for gate in bucket.gates for clause in gate.document.clauses)]
    relevant = {key for _, needs in clauses for key, _ in needs}
    relevant |= {
        clause.who
        for clause, _ in clauses
        if any(clause.principals.has(one.party, allows=clause.allows) is None for one in requesters)
    }
    keys: dict[int, tuple[int, ...]] = {}
    too_complex: set[int] = set()
    for one in requesters:
        too_complex |= one.complex & relevant
        for key, options in one.possible.items():
            if key in relevant:
                keys[key] = tuple(sorted({*keys.get(key, ()), *options}))
    return keys, too_complex


def _conditional(bucket: CompiledBucket, case: Case) -> str | None:
    """Return the first condition key of conditional requests that a Deny tests; None if there is none."""
    clauses = [*case.covered, *((clause, clause.needs) for gate in bucket.gates for clause in gate.document.clauses)]
    keys = (bucket.keys[key] for clause, needs in clauses if not clause.allows for key, _ in needs)
    return next((key.spelled for key in keys if key.name in CONDITIONAL), None)


def _canonicals(
    bucket: CompiledBucket, acls: Sequence[AclView], requesters: Sequence[Requester]
) -> Sequence[str | None]:
    """Return the canonical IDs that the bucket's owner may have. None stands for every ID that the policies and ACLs do
    not name.
    """
    if bucket.own_id is not None:
        return (bucket.own_id,)
    named = [
        one.party.canonical for one in requesters if one.party.canonical not in (None, SOMEBODY) and not one.trusted
    ]
    named += [view.owner for view in acls if view.owner != SOMEBODY]
    return [None, *dict.fromkeys(one for one in named if one and one not in PUBLIC_GROUPS and "://" not in one)]


def _accounts(bucket: CompiledBucket) -> Sequence[str | None]:
    if bucket.own_account is not None:
        return (bucket.own_account,)
    return [None, *bucket.names.accounts]


def _is_unclear(one: Requester, own_account: str | None) -> bool:
    """True if nobody knows if the requester belongs to the bucket's owner: a principal with a unique ID, the users of
    an identity provider, or the grantees of the owner's own S3 Access Grants instance.
    """
    if one.party.grants is not None and one.party.account is not None and not one.party.vended:
        return own_account in (None, one.party.account)
    return one.party.unique_id is not None or one.party.provider not in (None, *PUBLIC_PROVIDERS)


def _unclear_name(unclear: Iterable[Requester]) -> str | None:
    return next((one.party.provider or _unclear_key(one) for one in unclear), None)


def _unclear_key(one: Requester) -> str:
    return "aws:userid" if one.party.grants is None else "s3:AccessGrantsInstanceArn"


def _unknown_key(bucket: CompiledBucket, index: int) -> Reason:
    """Return the reason for a condition key whose value is not known."""
    key = bucket.keys[index]
    if not any(is_bucket_tag(name) for name in (key.name, *key.depends_on)):
        return Reason(ReasonCode.KEY_UNKNOWN, key.spelled)
    unread = next((one for one in (bucket.facts.abac, bucket.facts.tags) if isinstance(one, Unread)), None)
    return Reason(ReasonCode.BUCKET_TAGS_UNREAD, unread.code if unread else "skipped")


def _code(fact: object) -> str | None:
    if isinstance(fact, Unread):
        return fact.code
    return "skipped" if isinstance(fact, Skipped) else "malformed" if isinstance(fact, str) else None
