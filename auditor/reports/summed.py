"""Add up the summaries of several targets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import asdict

from auditor.model.access import Verdict
from auditor.model.finding import Severity
from auditor.model.rollup import TrendNight
from auditor.model.summary import AcceptedHoles, CallCounts, Coverage, ExceptedCounts, Summary
from auditor.model.target import Target

_NOWHERE: Final = Target("several")


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


def summed(entries: Iterable[IndexEntry]) -> list[Summary]:
    """Return the summaries that the sums are made of."""
    return [one.summary for one in entries if one.summary is not None]


def sum_of(entries: Iterable[IndexEntry]) -> Summary:
    """Return the sums as a summary of no target. It is complete if each target has a complete run, or is excluded."""
    found = list(entries)
    runs = summed(found)
    return Summary(
        run="",
        out="",
        target=_NOWHERE,
        engine="",
        complete=all(one.excluded is not None or (one.summary is not None and one.summary.complete) for one in found),
        coverage=Coverage(**_each((asdict(run.coverage) for run in runs), Coverage.__struct_fields__)),
        verdicts=_each((run.verdicts for run in runs), [verdict.value for verdict in Verdict]),
        findings=_each((run.findings for run in runs), [severity.value for severity in Severity]),
        rules_undecided=tuple(one for run in runs for one in run.rules_undecided),
        accepted=AcceptedHoles(
            sum(run.accepted.undecided for run in runs),
            sum(run.accepted.rules for run in runs),
            _each((run.accepted.hashing for run in runs), []),
        ),
        excepted=ExceptedCounts(
            _each((run.excepted.verdicts for run in runs), []),
            _each((run.excepted.findings for run in runs), []),
            sum(run.excepted.undecided for run in runs),
        ),
        hashing=None,
        calls=CallCounts(**_each((asdict(run.calls) for run in runs), CallCounts.__struct_fields__)),
        not_looked_at=(),
        seconds=sum(run.seconds for run in runs),
        resume=None,
    )


def _each(counts: Iterable[Mapping[str, int]], names: Iterable[str]) -> dict[str, int]:
    total = Counter(dict.fromkeys(names, 0))
    for one in counts:
        total.update(one)
    return dict(total)
