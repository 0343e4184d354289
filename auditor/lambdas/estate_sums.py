"""Take up what earlier hops of a start have done, and count its metrics."""

from __future__ import annotations

from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from auditor.config.settings import Settings
from auditor.estate.report import HOLE, BucketEnd
from auditor.lambdas.metrics import of_run
from auditor.model.estate import BucketOutcome, BucketResult, EstateReport
from auditor.reports.summary import exit_code
from auditor.runs.reading import RunReader
from auditor.runs.stores.base import Store

_READERS: Final = 8
"""Threads that read the summaries of earlier hops."""


def ended_before(store: Store, before: Collection[BucketResult], settings: Settings) -> dict[str, BucketEnd]:
    """Return the ends of the buckets that earlier hops have ended, each with the summary of its run. Blocks.

    A run whose summary is gone is not among them: its bucket is audited again.
    """
    audited = [one for one in before if one.outcome is BucketOutcome.AUDITED and one.run is not None]
    with ThreadPoolExecutor(_READERS) as threads:
        summaries = threads.map(lambda one: RunReader(store, one.bucket, one.run or "").summary, audited)
        found = {
            one.bucket: BucketEnd(run=one.run, summary=summary, code=exit_code(summary, settings.fail_on))
            for one, summary in zip(audited, summaries, strict=True)
            if summary is not None
        }
    for one in before:
        if one.outcome is BucketOutcome.HOLE and not one.unfinished:
            found[one.bucket] = BucketEnd(run=one.run, code=HOLE, failed=one.sentence)
    return found


def estate_metrics(report: EstateReport) -> dict[str, float]:
    """Return the metrics of a start: the sums over its runs. Metrics of each bucket would cost more than the audit."""
    lost = report.counts.holes + sum(one.hole is not None for one in report.accounts)
    return {
        **of_run(report),
        **({"RunsFailed": lost} if lost else {}),
    }
