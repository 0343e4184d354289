"""Read runs back: the lines of a run folder and latest.json."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from auditor.errors import OutputError, UsageError
from auditor.model.summary import Summary
from auditor.runs.checkpoint import Checkpoint, load_checkpoint
from auditor.runs.parts import found_parts, part_lines
from auditor.runs.paths import RUN_ID, bucket_path, run_path
from auditor.runs.stores.base import Store


def update_latest_json(store: Store, bucket: str, name: str, run_id: str) -> None:
    """Make run_id the latest of the target called `name`, unless a newer one is there."""

    def change(value: dict[str, Any] | None) -> dict[str, Any] | None:
        latest = value or {}
        runs = latest.get("runs")
        runs = runs if isinstance(runs, dict) else {}
        there = runs.get(name)
        if isinstance(there, str) and RUN_ID.fullmatch(there) and there >= run_id:
            return None
        return {**latest, "runs": {**runs, name: run_id}}

    store.update_json(f"{bucket_path(bucket)}/latest.json", change)


def last_listed(store: Store, bucket: str, name: str) -> int | None:
    """How many objects the latest complete run of the target called `name` listed; None when no file says so.

    Raises OutputError when latest.json may not be read: the run could not name itself there at its end.
    """
    found = store.get(f"{bucket_path(bucket)}/latest.json")
    try:
        latest = json.loads(found or b"")
        summary = store.get(f"{run_path(bucket, latest['runs'][name])}/summary.json")
        return Summary.from_dict(json.loads(summary or b"")).coverage.listed
    except (ValueError, KeyError, TypeError, RecursionError, OutputError, UsageError):
        return None  # the number only serves an estimate


def read_lines(store: Store, bucket: str, run_id: str, kind: str) -> Iterator[dict[str, Any]]:
    """The run's lines of one kind, in order. kind: one of parts.KINDS.

    Left out: a part that no checkpoint covers and whose objects are not in place, and parts that the run skipped.
    """
    folder = run_path(bucket, run_id)
    parts = found_parts(store, folder)
    committed = {(part.range_id, part.number) for part in parts if part.kind == "objects"}
    states: dict[str, Checkpoint | None] = {}
    for part in parts:
        if part.kind != kind:
            continue
        if part.range_id not in states:
            states[part.range_id] = load_checkpoint(store, bucket, run_id, part.range_id)
        state = states[part.range_id]
        if state is not None and part.number in state.skipped_parts:
            continue
        covered = state is not None and part.number < state.next_part
        if covered or (part.range_id, part.number) in committed:
            yield from part_lines(store, folder, part)
