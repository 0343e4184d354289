"""Make the page of a run: at the run's end, or later from its folder."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from itertools import islice

from auditor.errors import UsageError
from auditor.model.access import Verdict
from auditor.model.json_text import JsonError
from auditor.model.rollup import RollUps
from auditor.model.summary import Summary
from auditor.reports.highlights import EXPOSED, UNDECIDED, ExposedObject, Highlights
from auditor.reports.trend import trend
from auditor.runs.bucket_file import BucketFile
from auditor.runs.past import PastRun
from auditor.runs.reading import RunReader


def highlights_of(run: RunReader, exposed: int) -> Highlights:
    """Return the highlights of all lines, as Highlights.read() does, but parse only the lines that it keeps. Blocks.

    exposed: the number of exposed objects in the run.
    """
    shown, past = Highlights(), PastRun(run)
    for one in islice(past.of_verdict(Verdict.EXPOSED), min(exposed, EXPOSED)):
        shown.exposed.append(ExposedObject(one.key, one.version_id, tuple(one.seen.rules)))
    for line in past.findings(shown.worst.keeps):
        if line is None:
            shown.worst.count()
        else:
            shown.worst.add(line)
    shown.undecided.extend(islice(run.undecided(), UNDECIDED))
    return shown


def few_highlights_of(run: RunReader, undecided: int) -> Highlights:
    """Return the highlights of a run with roll-ups: the first undecided objects alone, because the roll-ups have
    samples of the others. So the time does not grow with the lines of the run. Blocks.

    undecided: the number of undecided objects in the run.
    """
    shown = Highlights()
    if undecided:
        shown.undecided.extend(islice(run.undecided(), UNDECIDED))
    return shown


def page_of(summary: Summary, shown: Highlights, bucket: bytes | None, rollups: RollUps | None) -> str:
    """Return the page of a run as HTML. bucket: the bytes of bucket.json; None if the run has none. rollups: the run's
    roll-ups; None if the run has none. The page then has only the objects and findings in `shown`.
    """
    from auditor.reports.page.build import source_of  # an import that every start would pay for
    from auditor.reports.page.render import audit_page

    described = None
    if bucket is not None:
        with suppress(JsonError):  # the page says less without it
            described = BucketFile.from_json(bucket)
    return audit_page(source_of(summary, shown, described, rollups))


def page_again(run: RunReader) -> str:
    """Return the page of a run from its folder. Raises UsageError if the run has no summary yet."""
    summary = run.summary
    if summary is None:
        raise UsageError(f"{run.uri} has no summary.json, because the run has not ended: go on with it by --resume")
    rollups = run.rollups()
    if rollups is not None and not rollups.nights:  # an earlier release wrote the run
        rollups = replace(rollups, nights=trend(summary, run.previous))
    shown = Highlights.read(run, summary.verdicts["exposed"]) if rollups is None else Highlights()
    return page_of(summary, shown, run.bucket_data, rollups)
