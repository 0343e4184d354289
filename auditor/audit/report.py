"""Make the page of a run."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from msgspec.structs import replace

from auditor.model.rollup import RollUps
from auditor.model.summary import Summary
from auditor.reports.highlights import UNDECIDED, Highlights
from auditor.runs.bucket_file import BucketFile
from auditor.runs.reading import RunReader


def highlights_of(run: RunReader, undecided: int) -> Highlights:
    """Return the undecided objects that a report names: the roll-ups have samples of the others, so that the time does
    not grow with the lines of the run. Blocks.

    undecided: the number of undecided objects in the run.
    """
    shown = Highlights()
    if undecided:
        shown.undecided.extend(islice(run.undecided(), UNDECIDED))
    return shown


def page_of(summary: Summary, shown: Highlights, bucket: BucketFile, rollups: RollUps, index: str | None = None) -> str:
    """Return the page of a run as HTML. bucket: its bucket.json. index: relative address of the index page; None if
    there is none. The page's commands have the whole path of the run's folder.
    """
    from auditor.reports.page import build, render  # imports Jinja

    place = summary.out if "://" in summary.out else str(Path(summary.out).absolute())
    whole = replace(summary, out=place)
    source = build.PageSource(summary=whole, shown=shown, bucket=bucket, rollups=rollups, index=index)
    return render.audit_page(source)
