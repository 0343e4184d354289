"""Make the page of a run: at the run's end, or later from its folder."""

from __future__ import annotations

from contextlib import suppress

from auditor.errors import OutputError, UsageError
from auditor.model.json_text import JsonError
from auditor.model.rollup import NAME as ROLLUPS
from auditor.model.rollup import RollUps
from auditor.model.summary import Summary
from auditor.reports.highlights import Highlights
from auditor.runs.bucket_file import BucketFile
from auditor.runs.reading import RunReader


def page_of(summary: Summary, shown: Highlights, bucket: bytes | None, rollups: bytes | None) -> str:
    """Return the page of a run as HTML. bucket: the bytes of bucket.json; None if the run has none. rollups: those of
    rollups.json; None if it has none: the page is then made of the objects and findings that `shown` has. Raises
    JsonError if the roll-ups are damaged.
    """
    from auditor.reports.page.build import source_of  # an import that every start would pay for
    from auditor.reports.page.render import audit_page

    described = None
    if bucket is not None:
        with suppress(JsonError):  # the page says less without it
            described = BucketFile.from_json(bucket)
    rolled = None if rollups is None else RollUps.from_json(rollups)
    return audit_page(source_of(summary, shown, described, rolled))


def page_again(run: RunReader) -> str:
    """Return the page of a run from its folder. Raises UsageError if the run has no summary yet."""
    summary = run.summary
    if summary is None:
        raise UsageError(f"{run.uri} has no summary.json, because the run has not ended: go on with it by --resume")
    data = run.store.get(f"{run.path}/{ROLLUPS}")
    shown = Highlights.read(run, summary.verdicts["exposed"]) if data is None else Highlights()
    try:
        return page_of(summary, shown, run.bucket_data, data)
    except JsonError as error:
        raise OutputError(f"{run.uri}/{ROLLUPS} is damaged ({error}): judge the run again") from error
