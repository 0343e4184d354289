"""Make the entries of the index page of an estate, or of all estates in a store: each bucket, and each account that is
a hole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from auditor.estate.files import last_estates
from auditor.model.estate import AccountResult, BucketOutcome, BucketResult, EarlierEstate, EstateReport
from auditor.model.target import Target
from auditor.reports.sum_summaries import IndexEntry
from auditor.runs.paths import began_later
from auditor.runs.stores.base import Store


def index_entries(estate: EstateReport, runs: Mapping[str, IndexEntry]) -> list[IndexEntry]:
    """Return the entries of the page. runs: by bucket, the entry of its run."""
    owners = _owners([estate])
    return [*(_entry(one, estate.estate, runs, owners) for one in estate.buckets), *_lost(estate.accounts)]


def entries_beside(store: Store, found: Sequence[IndexEntry]) -> tuple[list[IndexEntry], list[EarlierEstate]]:
    """Return the entries of all targets in a store, with the buckets and accounts that only the last reports of its
    estates name, and these reports. Blocks.

    found: the entries of the run folders. A bucket or an account of two estates has the worse outcome. Raises
    OutputError for a damaged estate.json.
    """
    estates = last_estates(store)
    if not estates:
        return list(found), []
    names = {one.bucket for estate in estates for one in estate.buckets}
    whole = [one for one in found if one.target.bucket in names and not one.target.prefix]
    runs: dict[str, IndexEntry] = {}
    for one in whole:  # a bucket may have two: current objects, and all versions
        runs.setdefault(one.target.bucket, one)
    others = [one for one in found if runs.get(one.target.bucket) is not one]
    return [*_worst(estates, runs), *_lost(_lost_accounts(estates)), *others], estates


def _owners(estates: Sequence[EstateReport | EarlierEstate]) -> dict[str | None, str]:
    """Return the words for each account, by number; {} if there is one account only."""
    found = {one.account: one.words for estate in estates for one in estate.accounts}
    return found if len(found) > 1 else {}


def _worst(estates: Sequence[EarlierEstate], runs: Mapping[str, IndexEntry]) -> Iterator[IndexEntry]:
    """Yield one entry for each bucket: a hole if one estate has it as a hole, excluded only if all exclude it."""
    owners = _owners(estates)
    entries: dict[str, list[IndexEntry]] = {}
    for estate in estates:
        for one in estate.buckets:
            entries.setdefault(one.bucket, []).append(_entry(one, estate.estate, runs, owners))
    for several in entries.values():
        yield min(several, key=lambda one: 0 if one.failed is not None else 2 if one.excluded is not None else 1)


def _entry(
    one: BucketResult, estate: str, runs: Mapping[str, IndexEntry], owners: Mapping[str | None, str]
) -> IndexEntry:
    """Return the entry of a bucket. estate: ID of the start that reports it. owners: words for the accounts."""
    found = runs.get(one.bucket) or IndexEntry(target=Target(one.bucket))
    found = replace(found, account=owners.get(one.account, ""))
    run = found.summary.run if found.summary is not None else None
    ended = run is not None and (run == one.run or began_later(run, estate))
    if one.outcome is BucketOutcome.EXCLUDED:
        return IndexEntry(target=found.target, excluded=one.sentence, account=found.account)
    if one.outcome is BucketOutcome.HOLE and not ended:
        return replace(found, failed=one.sentence)
    return found


def _lost_accounts(estates: Sequence[EarlierEstate]) -> list[AccountResult]:
    """Return the accounts that are holes, without those that a later start has listed. estates: the newest first."""
    listed: dict[str, str] = {}
    lost: dict[str | None, AccountResult] = {}
    for estate in estates:
        for one in estate.accounts:
            if one.hole is None and one.account is not None:
                listed.setdefault(one.account, estate.estate)
            elif one.hole is not None and not began_later(listed.get(one.account or "", ""), estate.estate):
                lost.setdefault(one.account, one)
    return list(lost.values())


def _lost(accounts: Sequence[AccountResult]) -> Iterator[IndexEntry]:
    for one in accounts:
        if one.hole is not None:
            yield IndexEntry(target=Target("account"), label=one.words, failed=one.hole)
