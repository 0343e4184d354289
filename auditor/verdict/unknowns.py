"""Collect the facts that are not known and on which the access to an object may depend."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any

from auditor.model.access import Reason, ReasonCode
from auditor.model.object import PUBLIC_GROUPS, Skipped, Unread
from auditor.model.policy import is_bucket_tag
from auditor.verdict.answers import Kinds
from auditor.verdict.compiled import CompiledBucket
from auditor.verdict.identities import CONDITIONAL
from auditor.verdict.object_facts import SOMEBODY, AclView
from auditor.verdict.places import Doubt
from auditor.verdict.principals import PUBLIC_PROVIDERS, Party
from auditor.verdict.requesters import Crowd
from auditor.verdict.worlds import Unknowns


def unknowns_of(
    bucket: CompiledBucket, acls: Sequence[AclView], crowd: Crowd, kinds: Kinds, cause: Reason
) -> tuple[Unknowns, dict[Any, Reason], dict[int, Reason]]:
    """Return the facts that are not known; the reason to give for each; and the condition keys that are too complex,
    each with its reason. cause: the reason for an ACL that is not known.
    """
    keys, too_complex = _keys(bucket, crowd, kinds)
    doubts = dict.fromkeys(site.place.doubt for site in crowd.sites if site.place.doubt is not None)
    unclear = [sender.party for sender in crowd.senders if _is_unclear(sender.party, bucket.own_account)]
    conditional = _conditional(bucket, kinds)
    unknowns = Unknowns(
        acls,
        (False, True) if bucket.unread else (False,),
        [None, *bucket.names.accounts] if bucket.own_account is None else (bucket.own_account,),
        _canonicals(bucket, acls, crowd),
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
        **{key: _unknown_key(bucket, key) for key in keys},
    }
    return unknowns, names, too_complex


def _keys(bucket: CompiledBucket, crowd: Crowd, kinds: Kinds) -> tuple[dict[int, tuple[int, ...]], dict[int, Reason]]:
    """Return the possible sets of true tests of each condition key that the world decides; and the keys that are too
    complex, each with the reason.
    """
    relevant = {key for _, needs in kinds.clauses for key, _ in needs}
    relevant |= {kinds.clauses[place][0].who for sender in crowd.senders for place in kinds.unclear(sender)}
    keys: dict[int, tuple[int, ...]] = {}
    too_complex: dict[int, Reason] = {}
    for index, truth in crowd.truths():
        if index in relevant and truth.is_open:
            keys[index] = tuple(sorted({*keys.get(index, ()), *truth.possible}))
        if index in relevant and truth.complex:
            too_complex[index] = _unknown_key(bucket, index) if truth.excess is None else truth.excess.reason
    return keys, too_complex


def _conditional(bucket: CompiledBucket, kinds: Kinds) -> str | None:
    """Return the first condition key of conditional requests that a Deny tests; None if there is none."""
    keys = (bucket.keys[key] for clause, needs in kinds.clauses if not clause.allows for key, _ in needs)
    return next((key.spelled for key in keys if key.name in CONDITIONAL), None)


def _canonicals(bucket: CompiledBucket, acls: Sequence[AclView], crowd: Crowd) -> Sequence[str | None]:
    """Return the canonical IDs that the bucket's owner may have. None stands for every ID that the policies and ACLs do
    not name.
    """
    if bucket.own_id is not None:
        return (bucket.own_id,)
    named = [
        one.party.canonical for one in crowd.senders if one.party.canonical not in (None, SOMEBODY) and not one.trusted
    ]
    named += [view.owner for view in acls if view.owner != SOMEBODY]
    return [None, *dict.fromkeys(one for one in named if one and one not in PUBLIC_GROUPS and "://" not in one)]


def _is_unclear(party: Party, own_account: str | None) -> bool:
    """True if nobody knows if the party belongs to the bucket's owner: a principal with a unique ID, the users of an
    identity provider, or the grantees of the owner's own S3 Access Grants instance.
    """
    if party.grants is not None and party.account is not None:
        return own_account in (None, party.account)
    return party.unique_id is not None or party.provider not in (None, *PUBLIC_PROVIDERS)


def _unclear_name(unclear: Iterable[Party]) -> str | None:
    of_grants = {False: "aws:userid", True: "s3:AccessGrantsInstanceArn"}
    return next((party.provider or of_grants[party.grants is not None] for party in unclear), None)


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
