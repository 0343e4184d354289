"""Make the page of a run."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from auditor.model.rollup import RollUps
from auditor.model.summary import Summary
from auditor.runs.bucket_file import BucketFile


def page_of(summary: Summary, bucket: BucketFile, rollups: RollUps, index: str | None = None) -> str:
    """Return the page of a run as HTML. bucket: its bucket.json. index: relative address of the index page; None if
    there is none. The page's commands have the whole path of the run's folder.
    """
    from auditor.reports.page import build, render  # imports Jinja

    place = summary.out if "://" in summary.out else str(Path(summary.out).absolute())
    whole = replace(summary, out=place)
    return render.render("audit.html", build.page_data(whole, bucket, rollups, index))
