"""Open a run by its place: the path or URI of its folder."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, TypedDict, Unpack

from msgspec.structs import replace

from auditor.errors import UsageError
from auditor.model.target import parse_target
from auditor.runs.paths import bucket_path
from auditor.runs.reading import RunReader, last_run, latest_runs
from auditor.runs.stores import open_store
from auditor.runs.stores.base import Store

_TARGET: Final = re.compile(r"(?i:s3|https?)://|arn:")
_RUN_FOLDER: Final = re.compile(r"(?P<out>.*/)bucket=(?P<bucket>[^/]+)/run=(?P<run>[^/]+)", re.DOTALL)


class StoreConnection(TypedDict, total=False):
    """The server, the AWS profile and the region of the bucket that has run folders."""

    endpoint_url: str | None
    profile: str | None
    region: str | None


@contextmanager
def open_run(place: str | os.PathLike[str], **connection: Unpack[StoreConnection]) -> Iterator[RunReader]:
    """Open the run in the folder `place`: a directory or s3:// URI that ends in bucket=BUCKET/run=ID.

    Raises UsageError if `place` has another form, or if no run is there.
    """
    match = _run_folder(place)
    if match is None:
        raise UsageError(f"{str(place)[:200]!r} is not a run folder: give its path or URI, OUT/bucket=BUCKET/run=ID")
    with open_store(match["out"], **connection) as store:
        run = RunReader(store, match["bucket"], match["run"])
        if not run.exists:
            raise UsageError(f"there is no run at {run.uri}: check the path")
        yield run


def latest_place(place: str, out: str, **connection: Unpack[StoreConnection]) -> str:
    """Return the place of a run folder that a user names. A target such as s3://BUCKET stands for the latest complete
    run of that target below `out`. Blocks. Raises UsageError if no such run is below `out`.
    """
    if is_run_folder(place) or not _TARGET.match(place):
        return place
    target = parse_target(place)
    with open_store(out, **connection) as store:
        runs = [last_run(store, replace(target, versions=versions)) for versions in (False, True)]
        if found := max((run for run in runs if run is not None), key=lambda run: run.run_id, default=None):
            return found.uri
        latest_runs(store, target.bucket)  # raises for a latest.json that is damaged
        raise UsageError(
            f"no complete run of {target.uri[:200]!r} is below {store.uri()}: audit it first, or give a run folder,"
            " OUT/bucket=BUCKET/run=ID"
        )


def named_run(given: str, store: Store, bucket: str) -> str:
    """Return the ID of a run of the bucket that a user names by its folder in the store, a path or URI. Any other text
    is returned as it is: it is the ID, or none.
    """
    match = _run_folder(given)
    own = match and _run_folder(store.uri(f"{bucket_path(bucket)}/run={match['run']}"))
    return match["run"] if match and own and match[0] == own[0] else given


def is_run_folder(place: str | os.PathLike[str]) -> bool:
    """True if the place has the form of a run folder: a path or s3:// URI that ends in bucket=BUCKET/run=ID."""
    return _run_folder(place) is not None


def _run_folder(place: str | os.PathLike[str]) -> re.Match[str] | None:
    whole = str(place)
    if "://" not in whole:
        with suppress(ValueError, RuntimeError):  # for a NUL, or an unknown home directory
            whole = str(Path(whole).expanduser().resolve())
    return None if "\0" in whole else _RUN_FOLDER.fullmatch(whole.rstrip("/"))
