"""Say why an object is open, hidden or closed: name the grants, statements and settings that made the verdict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from auditor.model.access import Reason, ReasonCode, Verdict
from auditor.model.bucket import BUCKET_OWNER_ENFORCED, Semantics
from auditor.model.object import Skipped, Unread
from auditor.verdict.compiled import CompiledBucket, level_of
from auditor.verdict.entry import Case, Result
from auditor.verdict.worlds import World

MOST_REASONS: Final = 10
"""Largest number of reasons of one object."""

_ASSUMED: Final = (ReasonCode.ACL_UNREAD, ReasonCode.POLICY_UNREAD, ReasonCode.OWNER_UNKNOWN)
"""Reasons that are given for access by an assumption, because a fact was not read. They are left out if the object is
open without the assumption."""


def reasons_of(
    bucket: CompiledBucket, verdict: Verdict, results: Sequence[Result], worlds: Sequence[World], case: Case
) -> list[Reason]:
    """Return the reasons of a verdict other than unknown. The reasons that open the object come first."""
    found: dict[Reason, None] = {}
    for result in results:
        found.update(dict.fromkeys(one for one in result.opens if one.code not in _ASSUMED))
    if verdict is Verdict.MASKED:
        for result, world in zip(results, worlds, strict=True):
            found.update(dict.fromkeys(_hiding(bucket, result, world, case)))
    elif verdict is not Verdict.EXPOSED:
        found.update(dict.fromkeys(_closing(bucket, worlds, case)))
    if verdict in (Verdict.PRIVATE, Verdict.MASKED):
        trusted = dict.fromkeys(entry for result in results for entry in result.trusted)
        found.update(dict.fromkeys(Reason(ReasonCode.TRUSTED, entry) for entry in trusted))
    return list(found)


def _hiding(bucket: CompiledBucket, result: Result, world: World, case: Case) -> Iterator[Reason]:
    """Yield the grants and statements that would open the object, then the settings that hide it."""
    for _, ways_in in result.potential:
        yield from (way.reason for way in ways_in)
    for one, ways_in in result.potential:
        for clause in bucket.door.closing(one, world, case):
            yield Reason(ReasonCode.POLICY_DENY, clause.name)
        codes = {way.reason.code for way in ways_in}
        if bucket.facts.ignores_public_acls and ReasonCode.ACL_GRANT in codes:
            yield Reason(ReasonCode.IGNORE_PUBLIC_ACLS, level_of(bucket.facts, "ignore_public_acls"))
        if bucket.cut is not None and ReasonCode.POLICY_ALLOW in codes:
            yield bucket.cut
        if one.place in bucket.door.cut_points:
            yield Reason(ReasonCode.RESTRICT_PUBLIC_BUCKETS, f"access point {one.place.point}")
        if case.key.customer:
            yield Reason(ReasonCode.CUSTOMER_KEY)
        if case.key.kms is not None:
            yield _key(bucket, case.key.kms)
        if bucket.door.pays and not one.party.signed:
            yield Reason(ReasonCode.REQUESTER_PAYS)


def _key(bucket: CompiledBucket, key: str) -> Reason:
    policies = bucket.facts.key_policies
    unread = not isinstance(policies, Skipped) and isinstance(policies.get(key), Unread)
    return Reason(ReasonCode.KMS_KEY_UNREAD if unread else ReasonCode.KMS_KEY, key or None)


def _closing(bucket: CompiledBucket, worlds: Sequence[World], case: Case) -> Iterator[Reason]:
    """Yield the reasons that close the object in every case."""
    if bucket.facts.ownership == BUCKET_OWNER_ENFORCED:
        yield Reason(ReasonCode.ACLS_DISABLED)
    foreign = bucket.facts.semantics is not Semantics.CEPH
    foreign = foreign and not any(bucket.door.policy_reaches(world) for world in worlds)
    for clause, _ in case.covered:
        if clause.allows and foreign:
            yield Reason(ReasonCode.NOT_BUCKET_OWNED, clause.name)
        if clause.allows and bucket.requesters.has_ended(clause.dated):
            yield Reason(ReasonCode.ENDED, clause.name)
