"""Make the entries of the index page of an estate, or of all estates in a store: each bucket, and each account that is
a hole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from auditor.audit.estate.files import last_estates
from auditor.model.estate import AccountResult, BucketOutcome, BucketResult, EarlierEstate, EstateReport
from auditor.model.target import Target
from auditor.reports.summed import IndexEntry
from auditor.runs.paths import began_later
from auditor.runs.stores.base import Store


def index_entries(
    estate: EstateReport | EarlierEstate, runs: Mapping[str, IndexEntry]
) -> tuple[list[IndexEntry], list[str]]:
    """Return the entries of the page, and its remarks. runs: by bucket, the entry of its run."""
    remarks = [estate.line, *estate.notes, *(f"Not looked at: {words}" for words in estate.not_looked_at)]
    buckets = [_entry(one, estate.estate, runs) for one in estate.buckets]
    return [*buckets, *_lost(estate.accounts)], remarks


def entries_beside(store: Store, found: Sequence[IndexEntry]) -> tuple[list[IndexEntry], list[str]]:
    """Return the entries of all targets in a store, with the buckets and accounts that only the last reports of its
    estates name, and the remarks of the page. Blocks.

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
    several = len(estates) > 1
    lines = [f"{one.folder}: {one.line}" if several and one.folder else one.line for one in estates]
    notes = [note for one in estates for note in one.notes]
    unseen = [f"Not looked at: {words}" for one in estates for words in one.not_looked_at]
    entries = [*_worst(estates, runs), *_lost(_lost_accounts(estates)), *others]
    return entries, list(dict.fromkeys([*lines, *notes, *unseen]))


def _worst(estates: Sequence[EarlierEstate], runs: Mapping[str, IndexEntry]) -> Iterator[IndexEntry]:
    """Yield one entry for each bucket: a hole if one estate has it as a hole, excluded only if all exclude it."""
    entries: dict[str, list[IndexEntry]] = {}
    for estate in estates:
        for one in estate.buckets:
            entries.setdefault(one.bucket, []).append(_entry(one, estate.estate, runs))
    for several in entries.values():
        yield min(several, key=lambda one: 0 if one.failed is not None else 2 if one.excluded is not None else 1)


def _entry(one: BucketResult, estate: str, runs: Mapping[str, IndexEntry]) -> IndexEntry:
    """Return the entry of a bucket. estate: ID of the start that reports it."""
    found = runs.get(one.bucket) or IndexEntry(target=Target(one.bucket))
    run = found.summary.run if found.summary is not None else None
    ended = run is not None and (run == one.run or began_later(run, estate))
    if one.outcome is BucketOutcome.EXCLUDED:
        return IndexEntry(target=found.target, excluded=one.sentence)
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
