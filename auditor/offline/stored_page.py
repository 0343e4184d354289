"""Make the page of a run again from its folder: also of a run that was killed, by its checkpoints."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from auditor.audit.conclude_run import RunConclusion, added_ranges, page_of
from auditor.audit.judging_configuration import judged_by
from auditor.config.layers import Layer
from auditor.config.resources import Resources
from auditor.errors import RunDamaged
from auditor.model.rollup import RollUps
from auditor.model.summary import Changes, Summary
from auditor.reports.rollup import finished_rollups
from auditor.runs.reading import RunReader
from auditor.runs.run_files import PLAN

NO_ENGINE: Final = "not known"
"""Stands for the engine of a run that has not written it yet."""
_UNFINISHED: Final = "the process was killed, or is still running"


def page_again(run: RunReader, index: str | None = None) -> str:
    """Return the page of a run from its folder: of a run without a summary, the page of its checkpoint. index: as for
    page_of(). Blocks. Raises OutputError if a file is damaged or gone.
    """
    file, summary = run.begun_with, run.summary
    if summary is not None:
        return page_of(replace(summary, out=run.uri), file, run.rollups(), index)
    summary, rollups = counts_so_far(run)
    return page_of(summary, file, rollups, index)


def counts_so_far(run: RunReader) -> tuple[Summary, RollUps]:
    """Return the summary and the roll-ups of a run that was killed, or is at work, by its checkpoints. Blocks.

    Raises OutputError for a damaged file, and if the parts have not the lines that the checkpoints count.
    """
    file = run.begun_with
    settings = replace(judged_by(file, f"{run.uri}/{PLAN}", Layer({}, str)).settings, engine=NO_ENGINE)
    sums = added_ranges(run, file, settings)
    if sums.damaged:
        raise RunDamaged(f"{run.uri} is damaged (its parts lack lines that it counts): start a new run")
    sums.holes = sums.holes or ["the end of the run"]
    conclusion = RunConclusion(
        file,
        run.plan_data or b"",
        settings,
        Resources(store=run.store),
        algorithms=file.selection.get("algorithms"),
        seconds=lambda: 0.0,
        earlier=None,  # the changes are given
        reason=_UNFINISHED,
    )
    summary = conclusion.summary(sums, Changes(why_not="a run is compared with the last one when it ends"))
    return summary, finished_rollups(sums.rollups, summary)
