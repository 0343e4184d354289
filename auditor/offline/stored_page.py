"""Make the page of a run again from its folder: also of a run that was killed, by its checkpoints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from auditor.audit.judged_by import judged_by
from auditor.audit.report import page_of
from auditor.audit.run_summary import RunEnd, summarize
from auditor.config.layers import Layer
from auditor.errors import RunDamaged
from auditor.model.dates import iso_date
from auditor.model.json_codec import JsonError
from auditor.model.rollup import RollUps
from auditor.model.summary import Changes, Resume, Summary
from auditor.reports.first_steps import JudgedFor
from auditor.reports.rollup import RollUpBuilder, finished_rollups
from auditor.reports.summary import not_looked_at
from auditor.runs.bucket_file import NAME as BUCKET_FILE
from auditor.runs.checkpoint import Checkpoint, load_checkpoint
from auditor.runs.documents import damaged
from auditor.runs.parts import found_parts, sealed_from_store
from auditor.runs.paths import UNDIVIDED, checkpoint_name
from auditor.runs.plan_file import load_plan
from auditor.runs.reading import RunReader
from auditor.runs.tally import Tally

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
    by, now, target = judged_by(file, f"{run.uri}/{BUCKET_FILE}", Layer({}, str)), iso_date(file.now), file.target
    tally, builder, states = Tally(), RollUpBuilder(), list(_checkpoints(run))
    builder.count_kinds(JudgedFor(file.facts, by.settings.trusted, target.versions, now))
    for range_id, state in states:
        _prove(run, range_id, state)
        tally.include(state.tally)
        try:
            builder.include(state.rollups or {"counts": []})
        except JsonError as error:
            raise damaged(f"{run.uri}/{checkpoint_name(range_id)}", error) from error
    undecided = {one.rule: one for _, state in states for one in state.rules_undecided}
    asked = run.checkpoint.selection.get("algorithms") if run.checkpoint else None
    ask = file.read[-1].ask
    end = RunEnd(
        run=run.run_id,
        out=run.uri,
        target=target,
        settings=replace(by.settings, engine=NO_ENGINE),
        now=file.now,
        tally=tally,
        rules_undecided=tuple(undecided.values()),
        algorithms=asked,
        not_looked_at=not_looked_at(file.facts, target, ask.acl, ask.head),
        seconds=0.0,
        resume=Resume(run.run_id, states[-1][1].start_after if states else None, _UNFINISHED),
        changes=Changes(why_not="a run is compared with the last one when it ends"),
    )
    summary = summarize(end)
    return summary, finished_rollups(builder, summary)


def _checkpoints(run: RunReader) -> Iterator[tuple[str, Checkpoint]]:
    """Yield the checkpoint of the run, or those of its ranges in key order, each with the ID of the range."""
    plan = load_plan(run.store, run.bucket_name, run.run_id)
    for range_id in [UNDIVIDED] if plan is None else [one.id for one in plan.ranges]:
        state = load_checkpoint(run.store, run.bucket_name, run.run_id, range_id)
        if state is not None:
            yield range_id, state


def _prove(run: RunReader, range_id: str, state: Checkpoint) -> None:
    """Raise OutputError unless the parts that the checkpoint covers have the lines that it counts."""
    lines = {"objects": 0, "findings": 0, "undecided": 0}
    for part in found_parts(run.store, run.path):
        covered = part.range_id == range_id and part.number < state.next_part
        if covered and part.number not in state.skipped_parts and part.kind in lines:
            lines[part.kind] += sealed_from_store(run.store, run.path, part).lines
    tally = state.tally
    counted = (tally.coverage["listed"], sum(tally.findings.values()), tally.coverage["undecided"])
    if tuple(lines.values()) != counted:
        raise RunDamaged(f"{run.uri} is damaged (its parts lack lines that it counts): start a new run")
