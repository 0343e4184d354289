"""Add up an estate: every bucket that a listing names is audited, excluded or a hole. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from auditor.estate.accounts import OpenedAccount
from auditor.estate.select_buckets import BucketChoice, ChosenBucket
from auditor.model.estate import (
    AccountResult,
    BucketCounts,
    BucketOutcome,
    BucketResult,
    EarlierEstate,
    EstateReport,
)
from auditor.model.exception import ExceptionState
from auditor.model.summary import NO_INVENTORY, Summary
from auditor.model.target import Target
from auditor.reports.summary import IndexEntry, holes, sum_of, verdict_sentence
from auditor.text import counted

HOLE: Final = 4
FINDINGS: Final = 3
NOT_LISTED: Final = (
    "directory buckets (S3 Express One Zone), table buckets (S3 Tables), vector buckets (S3 Vectors) and buckets on"
    " Outposts of these accounts: ListBuckets does not name them",
    "accounts that the estate does not name",
    "the things that the summary of each run names",
)
"""Things that no estate looks at."""

UNDER_WAY: Final = "the start has not ended"
"""The reason in an estate.json of a start that is under way, or was killed."""
NO_BUCKET: Final = "no bucket is visible to these credentials, so nothing was looked at"
_UNREACHED: Final = "the start ended before it was reached"
_NAMED: Final = 20
"""Largest number of buckets that one note names."""


class BucketEnd(Struct, frozen=True, kw_only=True):
    """The end of one bucket's audit. run: its ID; None if none was begun. summary: None if it failed. code: its exit
    code. failed: why it has no summary. unfinished: True if the same start can continue it all the same.
    """

    run: str | None
    summary: Summary | None = None
    code: int
    failed: str = ""
    unfinished: bool = False


class Estate(Struct, frozen=True, kw_only=True):
    """One start of an estate: its accounts, and the choice among their buckets.

    estate: ID of the start. out: URI of the store. folder: of the estate in the store. earlier: the report of the start
    before; None if there is none. own: the report of this start as an earlier process left it; None if it is new.
    """

    estate: str
    out: str
    folder: str
    opened: Sequence[OpenedAccount]
    choice: BucketChoice
    earlier: EarlierEstate | None = None
    own: EarlierEstate | None = None

    @property
    def audited(self) -> tuple[ChosenBucket, ...]:
        """The buckets that are to be audited."""
        return tuple(one for one in self.choice.buckets if one.excluded is None and one.hole is None)


def report_of(
    estate: Estate, ends: Mapping[str, BucketEnd], *, stopped: str | None = None, seconds: float = 0.0
) -> EstateReport:
    """Return the report of a start. ends: by bucket, those that have ended; each other bucket is a hole.

    stopped: why the start ended before its end; None if it did not.
    """
    results = [
        *(_result(one, ends.get(one.name), stopped) for one in estate.choice.buckets),
        *_remembered(estate),
    ]
    accounts = tuple(_account(one, results) for one in estate.opened)
    holes_of_accounts = sum(one.hole is not None for one in accounts)
    counts = _counts(results)
    codes = {one.exit_code for one in results}
    unseen = bool(counts.holes or holes_of_accounts or not counts.buckets)
    sums = sum_of(_entries(results, ends))
    return EstateReport(
        estate=estate.estate,
        out=estate.out,
        folder=estate.folder,
        since=estate.earlier.estate if estate.earlier is not None else None,
        complete=not unseen,
        stopped=stopped,
        exit_code=HOLE if unseen or HOLE in codes else FINDINGS if FINDINGS in codes else 0,
        line=_line(counts, holes_of_accounts, len(accounts)),
        counts=counts,
        accounts=accounts,
        exclusions=estate.choice.uses,
        coverage=sums.coverage,
        verdicts=sums.verdicts,
        findings=sums.findings,
        notes=(*_notes(estate, results), *_without_inventory(results, ends)),
        not_looked_at=NOT_LISTED,
        seconds=round(seconds, 1),
        buckets=tuple(results),
    )


def _result(one: ChosenBucket, end: BucketEnd | None, stopped: str | None) -> BucketResult:
    result = partial(BucketResult, bucket=one.name, account=one.owner.account.id, region=one.region)
    hole = partial(result, outcome=BucketOutcome.HOLE, exit_code=HOLE)
    if one.excluded is not None:
        return result(outcome=BucketOutcome.EXCLUDED, sentence=one.excluded)
    if one.hole is not None:
        return hole(sentence=one.hole)
    if end is None:
        sentence = f"{_UNREACHED}: {stopped}" if stopped else _UNREACHED
        return hole(sentence=sentence, unfinished=True)
    if end.summary is None:
        return hole(run=end.run, sentence=end.failed, unfinished=end.unfinished)
    sentence = "; ".join([verdict_sentence(end.summary), *holes(end.summary)])
    if not end.summary.complete:
        resume = end.summary.resume
        sentence = f"{sentence}: {resume.reason}" if resume and resume.reason else sentence
        return hole(run=end.run, sentence=sentence, unfinished=True)
    return result(outcome=BucketOutcome.AUDITED, run=end.run, exit_code=end.code, sentence=sentence)


def _remembered(estate: Estate) -> Iterable[BucketResult]:
    """Yield the buckets of accounts that are holes, which an earlier report names and no listing does today.

    What this start has done before its account became a hole stays done.
    """
    lost = {one.account.id for one in estate.opened if one.hole is not None and one.account.id}
    listed = {one.name for one in estate.choice.buckets}
    for known in filter(None, (estate.own, estate.earlier)):
        for one in known.buckets:
            if one.account not in lost or one.bucket in listed:
                continue
            listed.add(one.bucket)
            if known is estate.own and one.outcome is not BucketOutcome.HOLE:
                yield one
                continue
            sentence = f"its account could not be listed; an earlier start, {known.estate}, found the bucket"
            yield replace(one, outcome=BucketOutcome.HOLE, run=None, exit_code=HOLE, sentence=sentence, unfinished=True)


def _account(one: OpenedAccount, results: Sequence[BucketResult]) -> AccountResult:
    account = one.account
    own = [result for result in results if result.account == account.id]
    return AccountResult(account=account.id, name=account.name, role=account.role, hole=one.hole, counts=_counts(own))


def _counts(results: Sequence[BucketResult]) -> BucketCounts:
    found = Counter(one.outcome for one in results)
    return BucketCounts(
        buckets=len(results),
        audited=found[BucketOutcome.AUDITED],
        excluded=found[BucketOutcome.EXCLUDED],
        holes=found[BucketOutcome.HOLE],
    )


def _line(counts: BucketCounts, holes_of_accounts: int, accounts: int) -> str:
    """Return the one line that adds up."""
    found = (
        f"{counted(counts.buckets, 'bucket')} in {counted(accounts, 'account')} = {counts.audited:,} audited"
        f" + {counts.excluded:,} excluded + {counted(counts.holes, 'hole')}"
    )
    if not holes_of_accounts:
        return found if counts.buckets else f"{found}: {NO_BUCKET}"
    verb = "is a hole" if holes_of_accounts == 1 else "are holes"
    return f"{found}; {holes_of_accounts:,} of the accounts {verb}: there may be more buckets"


def _notes(estate: Estate, results: Sequence[BucketResult]) -> Iterable[str]:
    for use in estate.choice.uses:
        if use.state is ExceptionState.EXPIRED:
            what = f"{counted(use.matched, 'bucket')} {'is' if use.matched == 1 else 'are'} no longer excluded"
            yield f"{use.decision} of {use.owner} ended on {use.until}: {what}"
        elif use.state is ExceptionState.UNUSED:
            yield f"{use.decision} of {use.owner} matches no bucket: remove or correct it"
    if estate.earlier is None:
        return
    known = {one.bucket for one in estate.earlier.buckets}
    new = [one.bucket for one in results if one.bucket not in known]
    here = {one.bucket for one in results}
    accounts = {one.account.id for one in estate.opened}
    gone = [one.bucket for one in estate.earlier.buckets if one.bucket not in here and one.account in accounts]
    for names, words in ((new, "new"), (gone, "not listed any more")):
        if names:
            yield f"{words} since the start {estate.earlier.estate}: {_first(names)}"


def _without_inventory(results: Sequence[BucketResult], ends: Mapping[str, BucketEnd]) -> Iterable[str]:
    """Yield a sentence on the buckets that were audited by calls, because they have no usable S3 Inventory."""
    ended = {name: end.summary for name, end in ends.items() if end.summary is not None}
    names = [
        one.bucket
        for one in results
        if one.bucket in ended and any(words.startswith(NO_INVENTORY) for words in ended[one.bucket].not_looked_at)
    ]
    if names:
        yield f"audited with calls alone, without a usable S3 Inventory: {_first(names)}"


def _first(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}"


def _entries(results: Sequence[BucketResult], ends: Mapping[str, BucketEnd]) -> Iterable[IndexEntry]:
    """Yield the entries that are summed: those of the buckets that are not excluded."""
    for one in results:
        if one.outcome is not BucketOutcome.EXCLUDED:
            end = ends.get(one.bucket)
            yield IndexEntry(target=Target(one.bucket), summary=end.summary if end else None)
