"""Write the index page of several targets beside their run folders, from the runs of this start or from the folders."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from msgspec.structs import replace

from auditor.errors import OutputError, UsageError
from auditor.model.rollup import RollUps
from auditor.model.summary import Summary
from auditor.model.target import BUCKET_NAME, Target
from auditor.reports.sum_summaries import IndexEntry
from auditor.reports.trend import nights_of
from auditor.runs.latest import NAME as LATEST
from auditor.runs.latest import last_run, latest_runs
from auditor.runs.paths import run_path
from auditor.runs.reading import RunReader
from auditor.runs.stores.base import Store

if TYPE_CHECKING:
    from auditor.reports.page.index import AnyEstate

NAME: Final = "index.html"
MOST: Final = 100
"""Largest number of buckets whose runs are read for one page at the end of an audit: three files of each target."""
_LINKED: Final = rb'href="bucket=([a-z0-9.-]{3,63})/run='


def entry_of(target: Target, summary: Summary, rollups: RollUps | None = None) -> IndexEntry:
    """Return the entry of a run that has just ended. rollups: None for an entry without the trend."""
    nights = () if rollups is None else rollups.nights
    return IndexEntry(target=target, summary=summary, link=_link(summary), nights=nights)


def latest_entry(store: Store, target: Target) -> IndexEntry:
    """Return the entry of a target from its last complete run in the store; one without numbers if there is none, or if
    it cannot be read. Blocks.
    """
    try:
        run = last_run(store, target)
        found = None if run is None else _of_run(run)
    except OutputError as error:
        return IndexEntry(target=target, failed=str(error))
    return found or IndexEntry(target=target)


def entries_in(store: Store) -> list[IndexEntry]:
    """Return the entries of all targets that have a complete run in the store, of all buckets. Blocks.

    In a bucket it lists the names of all files. A run that cannot be read is named by its bucket, and has no numbers;
    so is a bucket of which no run is complete.
    """
    return [entry for bucket in _buckets(store) for entry in _entries_of(store, bucket)]


def others_in(store: Store, own: Iterable[IndexEntry]) -> list[IndexEntry]:
    """Return the entries of the targets in the store that a command did not audit, for the page at its end. Blocks.

    own: the entries of the command. A directory says which buckets it has. In a bucket they are those to which the
    present page links, so that no name is listed. Raises OutputError if there are more than MOST of them.
    """
    own = list(own)
    buckets, targets = {one.target.bucket for one in own}, {_whole(one.target) for one in own}
    if store.bucket is None:
        found = _buckets(store)
    else:
        found = sorted({name.decode() for name in re.findall(_LINKED, store.get(NAME) or b"")})
    if len(found) > MOST:
        more = f"runs of more than {MOST} buckets are at {store.uri()}"
        raise OutputError(f"{more}: write the page of all with `auditor report {store.uri()}`")
    entries = (entry for bucket in found for entry in _entries_of(store, bucket))
    return [
        one
        for one in entries
        if _whole(one.target) not in targets and (one.summary is not None or one.target.bucket not in buckets)
    ]


def _whole(target: Target) -> Target:
    return replace(target, start_after=None, stop_at=None)


def write_index(
    store: Store, entries: Iterable[IndexEntry], estates: Sequence[AnyEstate] = (), *, folder: str | None = None
) -> str:
    """Write the page into the store, and return its URI. estates: as in index_page(). folder: the one in the store in
    which the page lies; None for beside the run folders. Raises OutputError. Blocks.
    """
    path, place = (NAME, store.uri()) if folder is None else (f"{folder}/{NAME}", store.uri(folder))
    if folder is not None:
        entries = [replace(one, link=f"../{one.link}") if one.link is not None else one for one in entries]
    store.put(path, index_text(entries, place, estates).encode())
    return store.uri(path)


def index_text(entries: Iterable[IndexEntry], place: str, estates: Sequence[AnyEstate] = ()) -> str:
    """Return the page as HTML. place: the URI of the store. estates: as in index_page()."""
    from auditor.reports.page import index, render  # imports Jinja

    return render.render("index.html", index.index_page(entries, place, estates))


def _buckets(store: Store) -> list[str]:
    """Return the buckets that have a run or a latest.json in the store, sorted."""
    if store.bucket is None:  # a directory, which may have much else below it
        place = Path(store.uri())
        found = (path for name in (LATEST, "run=*") for path in place.glob(f"bucket=*/{name}"))
        paths = [path.relative_to(place).as_posix() for path in found]
    else:
        paths = [path for path in store.list("bucket=") if path.partition("/")[2].startswith((LATEST, "run="))]
    names = {path.partition("/")[0].removeprefix("bucket=") for path in paths}
    return sorted(name for name in names if BUCKET_NAME.fullmatch(name))


def _entries_of(store: Store, bucket: str) -> Iterator[IndexEntry]:
    """Yield an entry for each run that the latest.json of a bucket names."""
    try:
        runs = latest_runs(store, bucket)
    except OutputError as error:
        yield IndexEntry(target=Target(bucket), failed=str(error))
        return
    if not runs:
        yield IndexEntry(target=Target(bucket), failed="it has no complete run")
    for run in runs:
        try:
            found = _of_run(run)
            failed = f"its run {run.run_id} no longer exists"
        except OutputError as error:
            found, failed = None, str(error)
        yield found or IndexEntry(target=Target(bucket), failed=failed)


def _of_run(run: RunReader) -> IndexEntry | None:
    """Return the entry of a run; None if its folder has no summary."""
    summary = run.summary
    if summary is None:
        return None
    return IndexEntry(target=summary.target, summary=summary, link=_link(summary), nights=nights_of(run))


def _link(summary: Summary) -> str | None:
    """Return the address of the run's page, relative to the index; None if it has no safe one."""
    with suppress(UsageError):
        return f"{quote(run_path(summary.target.bucket, summary.run), safe='/=')}/report.html"
    return None
