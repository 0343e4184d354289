"""Read and write latest.json, the file that names the latest complete run of each target of a bucket."""

from __future__ import annotations

from typing import Any, Final

from auditor.errors import UsageError
from auditor.model.json_codec import JsonError, as_object, parse_document
from auditor.model.target import Target
from auditor.runs.documents import AGAIN, damaged
from auditor.runs.paths import RUN_ID, began_later, bucket_path
from auditor.runs.reading import RunReader
from auditor.runs.stores.base import Store

NAME: Final = "latest.json"
_KINDS: Final = ("current", "versions")
"""The members of `runs`: each has the IDs of runs by the prefix of their target."""


def last_run(store: Store, target: Target) -> RunReader | None:
    """Return a reader of the latest complete run of a target; None if latest.json names none.

    A latest.json that is damaged, or of a development version, names none: a run then compares with nothing and keeps
    nothing. The end of the run says what to do with a damaged file. Raises OutputError if latest.json may not be read:
    the present run then could not update it either.
    """
    found = store.get(f"{bucket_path(target.bucket)}/{NAME}")
    try:
        runs = parse_document(found or b"")["runs"]
        return RunReader(store, target.bucket, runs[_KINDS[target.versions]][target.prefix])
    except (JsonError, KeyError, TypeError, UsageError):
        return None


def latest_runs(store: Store, bucket: str) -> list[RunReader]:
    """Return readers of the latest complete runs of all targets in a bucket, those of the widest targets first.

    Raises OutputError if latest.json may not be read, is damaged, or is of a development version.
    """
    path = f"{bucket_path(bucket)}/{NAME}"
    data = store.get(path)
    if data is None:
        return []
    try:
        runs = as_object(parse_document(data)["runs"])
        named = sorted((len(prefix), prefix, kind) for kind in _KINDS for prefix in as_object(runs.get(kind, {})))
        return [RunReader(store, bucket, str(runs[kind][prefix])) for _, prefix, kind in named]
    except (JsonError, KeyError, UsageError) as error:
        raise damaged(store.uri(path), error, AGAIN) from error


def name_latest(run: RunReader) -> None:
    """Write a complete run into latest.json, for a process that died before it did so. A run that was judged again is
    left out, and so is one that fills a run which is not the latest one, as at the end of a run.
    """
    summary, file = run.summary, run.plan
    if summary is None or not summary.target.whole or file is None or file.judged_from is not None:
        return
    latest = last_run(run.store, summary.target)
    if file.filled is None or latest is None or latest.run_id <= file.filled.run:
        update_latest_json(run.store, summary.target, run.run_id)


def update_latest_json(store: Store, target: Target, run_id: str) -> None:
    """Write into latest.json that this run is the target's latest one, unless the file names a run that began later."""
    kind = _KINDS[target.versions]

    def change(value: dict[str, Any] | None) -> dict[str, Any] | None:
        named = (value or {}).get("runs")
        runs: dict[str, Any] = {one: {} for one in _KINDS} | (named if isinstance(named, dict) else {})
        same = runs[kind] if isinstance(runs[kind], dict) else {}
        there = same.get(target.prefix)
        known = isinstance(there, str) and RUN_ID.fullmatch(there)
        if known and (there == run_id or began_later(str(there), run_id)):
            return None
        return {"runs": {**runs, kind: {**same, target.prefix: run_id}}}

    store.update_json(f"{bucket_path(target.bucket)}/{NAME}", change)
