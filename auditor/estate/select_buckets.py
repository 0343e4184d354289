"""Choose the buckets of an estate that are audited, and give the reason for each that is left out. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from auditor.config.resources import Resources
from auditor.errors import UsageError
from auditor.estate.accounts import OpenedAccount
from auditor.model.estate import EstateAccount, Exclusion, ExclusionUse, Restriction, any_matches
from auditor.model.exception import ExceptionState
from auditor.model.target import check_bucket_name
from auditor.s3.bucket_list import ListedBucket

TWICE: Final = "two accounts list a bucket of this name, and their runs would share one folder"


class ChosenBucket(Struct, frozen=True, kw_only=True):
    """A listed bucket. excluded: why it is not audited, in words; None if it is. hole: why it cannot be, or None."""

    name: str
    region: str | None
    owner: OpenedAccount
    excluded: str | None = None
    hole: str | None = None


class BucketChoice(Struct, frozen=True):
    """All listed buckets by account and name, and the use of each exclusion and restriction."""

    buckets: tuple[ChosenBucket, ...]
    uses: tuple[ExclusionUse, ...]


Decision = Exclusion | Restriction


def places_of(stores: Resources) -> dict[str, str]:
    """Return the buckets that an audit writes to, each with the reason for which it is not audited."""
    places = {"the run folders": stores.store, "the manifests for S3 Batch Operations": stores.manifests}
    return {
        store.bucket: f"it has {words} of this estate, and an audit never writes to a bucket that it audits"
        for words, store in places.items()
        if store is not None and store.bucket is not None
    }


def choose(opened: Sequence[OpenedAccount], day: str, places: Mapping[str, str]) -> BucketChoice:
    """Choose among the listed buckets. day: the present one in UTC, YYYY-MM-DD; what has expired excludes no more.

    places: by bucket, the reason for which an audit must not touch it, because it writes there.
    """
    used: Counter[Decision] = Counter()
    buckets: list[ChosenBucket] = []
    names = Counter(bucket.name for one in opened for bucket in one.buckets)
    for one in opened:
        for bucket in sorted(one.buckets, key=lambda bucket: bucket.name):
            reason = places.get(bucket.name)
            if reason is None:
                reason = _reason(one.account, bucket, day, used)
            hole = None if reason is not None else TWICE if names[bucket.name] > 1 else _fault(bucket.name)
            buckets.append(ChosenBucket(name=bucket.name, region=bucket.region, owner=one, excluded=reason, hole=hole))
    return BucketChoice(tuple(buckets), tuple(_uses([one.account for one in opened], used, day)))


def _fault(name: str) -> str | None:
    """Return why a bucket with this name cannot be audited; None if it can. A server may list any text."""
    try:
        check_bucket_name(name)
    except UsageError as error:
        return str(error)
    return None


def _reason(account: EstateAccount, bucket: ListedBucket, day: str, used: Counter[Decision]) -> str | None:
    """Return the reason for which a bucket is left out; None if it is audited. used: counts what matches."""
    covering = list(dict.fromkeys(one for one in _decisions(account) if _covers(one, bucket)))
    holding = [one for one in covering if day <= one.until]
    used.update(holding or covering)  # one that has expired counts if nothing else leaves out the bucket
    if not holding:
        return None
    first = holding[0]
    return f"by {_words(first)}: {first.reason} ({first.owner}, until {first.until})"


def _decisions(account: EstateAccount) -> Iterable[Decision]:
    yield from account.exclusions
    if account.restriction is not None:
        yield account.restriction


def _covers(decision: Decision, bucket: ListedBucket) -> bool:
    """True if the decision leaves out the bucket. A bucket of which the region is not known is in each region."""
    if isinstance(decision, Exclusion):
        return decision.matches(bucket.name)
    named = not decision.include or any_matches(decision.include, bucket.name)
    there = not decision.regions or bucket.region is None or bucket.region in decision.regions
    return not (named and there)


def _words(decision: Decision) -> str:
    if isinstance(decision, Exclusion):
        return f"the pattern {decision.pattern}"
    parts = [", ".join(decision.include) or "buckets", f"in {', '.join(decision.regions)}" if decision.regions else ""]
    return f"the restriction to {' '.join(part for part in parts if part)}"


def _uses(accounts: Sequence[EstateAccount], used: Counter[Decision], day: str) -> Iterable[ExclusionUse]:
    """Yield each exclusion and restriction once, in the order of the file, with its state."""
    holders: dict[Decision, list[str | None]] = {}
    for account in accounts:
        for decision in _decisions(account):
            holders.setdefault(decision, []).append(account.id)
    for decision, ids in holders.items():
        state = ExceptionState.ACTIVE if used[decision] else ExceptionState.UNUSED
        yield ExclusionUse(
            account=ids[0] if len(ids) == 1 else None,
            decision=_words(decision),
            reason=decision.reason,
            owner=decision.owner,
            until=decision.until,
            state=state if day <= decision.until else ExceptionState.EXPIRED,
            matched=used[decision],
        )
