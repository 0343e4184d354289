"""Make the entries of an estate's index page: each bucket, and each account that is a hole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from auditor.audit.estate.files import earlier_estate
from auditor.model.estate import AccountResult, BucketOutcome, EarlierEstate, EstateReport
from auditor.model.target import Target
from auditor.reports.summed import IndexEntry
from auditor.runs.paths import began_later
from auditor.runs.stores.base import Store


def index_entries(
    estate: EstateReport | EarlierEstate, runs: Mapping[str, IndexEntry]
) -> tuple[list[IndexEntry], list[str]]:
    """Return the entries of the page, and its remarks. runs: by bucket, the entry of its run."""
    remarks = [estate.line, *estate.notes, *(f"Not looked at: {words}" for words in estate.not_looked_at)]
    return [*_buckets(estate, runs), *_accounts(estate.accounts)], remarks


def entries_beside(store: Store, found: Sequence[IndexEntry]) -> tuple[list[IndexEntry], list[str]]:
    """Return the entries of all targets in a store, with the buckets and accounts that only its estate.json names, and
    the remarks of the page. Blocks.

    found: the entries of the run folders. Raises OutputError for a damaged estate.json.
    """
    estate = earlier_estate(store)
    if estate is None:
        return list(found), []
    names = {one.bucket for one in estate.buckets}
    whole = [one for one in found if one.target.bucket in names and not one.target.prefix]
    runs: dict[str, IndexEntry] = {}
    for one in whole:  # a bucket may have two: current objects, and all versions
        runs.setdefault(one.target.bucket, one)
    others = [one for one in found if runs.get(one.target.bucket) is not one]
    entries, remarks = index_entries(estate, runs)
    return [*entries, *others], remarks


def _buckets(estate: EstateReport | EarlierEstate, runs: Mapping[str, IndexEntry]) -> Iterator[IndexEntry]:
    for one in estate.buckets:
        found = runs.get(one.bucket) or IndexEntry(target=Target(one.bucket))
        run = found.summary.run if found.summary is not None else None
        ended = run is not None and (run == one.run or began_later(run, estate.estate))
        if one.outcome is BucketOutcome.EXCLUDED:
            yield IndexEntry(target=found.target, excluded=one.sentence)
        elif one.outcome is BucketOutcome.HOLE and not ended:
            yield replace(found, failed=one.sentence)
        else:
            yield found


def _accounts(accounts: Sequence[AccountResult]) -> Iterator[IndexEntry]:
    for one in accounts:
        if one.hole is not None:
            yield IndexEntry(target=Target("account"), label=one.words, failed=one.hole)
