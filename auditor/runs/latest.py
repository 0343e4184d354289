"""Read and write latest.json, the file that names the latest complete run of each target of a bucket."""

from __future__ import annotations

from typing import Any

from auditor.errors import OutputError, UsageError
from auditor.model.json_text import JsonError, as_object, parse_object
from auditor.runs.paths import RUN_ID, began_later, bucket_path, target_name
from auditor.runs.reading import RunReader
from auditor.runs.stores.base import Store


def last_run(store: Store, bucket: str, name: str) -> RunReader | None:
    """Return a reader of the latest complete run of a target; None if latest.json names none.

    name: the target's name in latest.json, made by target_name(). A damaged latest.json names none: a run then compares
    with nothing and keeps nothing, and its end says what to do with the file. Raises OutputError if latest.json may not
    be read: the present run then could not update it either.
    """
    found = store.get(f"{bucket_path(bucket)}/latest.json")
    try:
        return RunReader(store, bucket, parse_object(found or b"")["runs"][name])
    except (JsonError, KeyError, TypeError, UsageError):
        return None


def latest_runs(store: Store, bucket: str) -> list[RunReader]:
    """Return readers of the latest complete runs of all targets in a bucket, those of the widest targets first.

    Raises OutputError if latest.json may not be read, or is damaged.
    """
    path = f"{bucket_path(bucket)}/latest.json"
    data = store.get(path)
    if data is None:
        return []
    try:
        named = as_object(parse_object(data)["runs"])
        return [
            RunReader(store, bucket, str(named[name])) for name in sorted(named, key=lambda name: (len(name), name))
        ]
    except (JsonError, KeyError, UsageError) as error:
        raise OutputError(f"{store.uri(path)} is damaged ({error}): audit again") from error


def name_latest(run: RunReader) -> None:
    """Write a complete run into latest.json, for a process that died before it did so. A run that was judged again is
    left out, and so is one that fills a run which is not the latest one, as at the end of a run.
    """
    summary, file = run.summary, run.bucket
    if summary is None or not summary.target.whole or file is None or file.judged_from is not None:
        return
    name = target_name(summary.target)
    latest = last_run(run.store, run.bucket_name, name)
    if file.filled is None or latest is None or latest.run_id <= file.filled.run:
        update_latest_json(run.store, run.bucket_name, name, run.run_id)


def update_latest_json(store: Store, bucket: str, name: str, run_id: str) -> None:
    """Write into latest.json that this run is the target's latest one, unless the file names a run that began later.

    name: the target's name in latest.json, made by target_name().
    """

    def change(value: dict[str, Any] | None) -> dict[str, Any] | None:
        latest = value or {}
        runs = latest.get("runs")
        runs = runs if isinstance(runs, dict) else {}
        there = runs.get(name)
        known = isinstance(there, str) and RUN_ID.fullmatch(there)
        if known and (there == run_id or began_later(str(there), run_id)):
            return None
        return {**latest, "runs": {**runs, name: run_id}}

    store.update_json(f"{bucket_path(bucket)}/latest.json", change)
