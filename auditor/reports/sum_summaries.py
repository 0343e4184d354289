"""Add up the summaries of several targets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, Final, TypeVar

from msgspec import Struct
from msgspec.structs import asdict, replace

from auditor.model.access import Verdict
from auditor.model.finding import Severity
from auditor.model.rollup import TrendNight
from auditor.model.summary import AcceptedHoles, CallCounts, Coverage, ExceptedCounts, Summary
from auditor.model.target import Target

_NOWHERE: Final = Target("several")
_NO_COVERAGE: Final = Coverage(**dict.fromkeys(Coverage.__struct_fields__, 0))
_NO_CALLS: Final = CallCounts(**dict.fromkeys(CallCounts.__struct_fields__, 0))
T = TypeVar("T", bound=Struct)


class IndexEntry(Struct, frozen=True, kw_only=True):
    """One target of the index page.

    summary: of its run; None if it has none. link: address of the run's page, relative to the index. nights: its trend.
    failed: a sentence, if its last start has failed or was not begun. excluded: the reason, if it was left out. label:
    the words that the page shows in place of the target's URI, for an account whose buckets are not known. account: the
    one that owns the bucket, in words, on a page of several accounts.
    """

    target: Target
    summary: Summary | None = None
    link: str | None = None
    nights: tuple[TrendNight, ...] = ()
    failed: str | None = None
    excluded: str | None = None
    label: str = ""
    account: str = ""

    @property
    def name(self) -> str:
        return self.label or self.target.uri


def summaries_of(entries: Iterable[IndexEntry]) -> list[Summary]:
    """Return the summaries that the sums are made of."""
    return [one.summary for one in entries if one.summary is not None]


def sum_of(entries: Iterable[IndexEntry]) -> Summary:
    """Return the sums as a summary of no target. It is complete if each target has a complete run, or is excluded."""
    found = list(entries)
    runs = summaries_of(found)
    return Summary(
        run="",
        out="",
        target=_NOWHERE,
        engine="",
        complete=all(one.excluded is not None or (one.summary is not None and one.summary.complete) for one in found),
        coverage=_added(_NO_COVERAGE, (run.coverage for run in runs)),
        verdicts=added_up(dict.fromkeys(map(str, Verdict), 0), (run.verdicts for run in runs)),
        findings=added_up(dict.fromkeys(map(str, Severity), 0), (run.findings for run in runs)),
        rules_undecided=tuple(one for run in runs for one in run.rules_undecided),
        accepted=_added(AcceptedHoles(), (run.accepted for run in runs)),
        excepted=_added(ExceptedCounts(), (run.excepted for run in runs)),
        hashing=None,
        calls=_added(_NO_CALLS, (run.calls for run in runs)),
        not_looked_at=(),
        seconds=sum(run.seconds for run in runs),
        resume=None,
    )


def _added(zero: T, several: Iterable[T]) -> T:
    """Return the sum of counts in records of one type: of numbers, and of numbers by name. zero: a record of none."""
    found = [asdict(one) for one in several]
    return replace(zero, **{name: added_up(none, (one[name] for one in found)) for name, none in asdict(zero).items()})


def added_up(zero: Any, several: Iterable[Any]) -> Any:
    """Return the sum of numbers, or of numbers by name. zero: the sum of none."""
    if isinstance(zero, int):
        return sum(several)
    total = Counter(zero)
    for one in several:
        total.update(one)
    return dict(total)
