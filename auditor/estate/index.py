"""Write the index page of several targets beside their run folders, from the runs of this start or from the folders.

The page of an estate, or of all estates in a store, has an entry for each bucket, and for each account that is a hole.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from msgspec.structs import replace

from auditor.errors import OutputError, UsageError
from auditor.estate.files import last_estates
from auditor.model.estate import AccountResult, BucketOutcome, BucketResult, EarlierEstate, EstateReport
from auditor.model.rollup import RollUps
from auditor.model.summary import Summary
from auditor.model.target import BUCKET_NAME, Target
from auditor.reports.summary import IndexEntry
from auditor.reports.trend import nights_of
from auditor.runs.paths import began_later, run_path
from auditor.runs.reading import LATEST, RunReader, last_run, latest_runs
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


def index_entries(estate: EstateReport, runs: Mapping[str, IndexEntry]) -> list[IndexEntry]:
    """Return the entries of the page. runs: by bucket, the entry of its run."""
    owners = _owners([estate])
    return [*(_entry(one, estate.estate, runs, owners) for one in estate.buckets), *_lost(estate.accounts)]


def entries_beside(store: Store, found: Sequence[IndexEntry]) -> tuple[list[IndexEntry], list[EarlierEstate]]:
    """Return the entries of all targets in a store, with the buckets and accounts that only the last reports of its
    estates name, and these reports. Blocks.

    found: the entries of the run folders. A bucket or an account of two estates has the worse outcome. Raises
    OutputError for a damaged estate.json.
    """
    estates = last_estates(store)
    if not estates:
        return list(found), []
    names = {one.bucket for estate in estates for one in estate.buckets}
    whole = [one for one in found if one.target.bucket in names and not one.target.prefix]
    runs: dict[str, IndexEntry] = {}
    for one in whole:  # a bucket may have two: current objects, and all versions
        runs.setdefault(one.target.bucket, one)
    others = [one for one in found if runs.get(one.target.bucket) is not one]
    return [*_worst(estates, runs), *_lost(_lost_accounts(estates)), *others], estates


def _owners(estates: Sequence[EstateReport | EarlierEstate]) -> dict[str | None, str]:
    """Return the words for each account, by number; {} if there is one account only."""
    found = {one.account: one.words for estate in estates for one in estate.accounts}
    return found if len(found) > 1 else {}


def _worst(estates: Sequence[EarlierEstate], runs: Mapping[str, IndexEntry]) -> Iterator[IndexEntry]:
    """Yield one entry for each bucket: a hole if one estate has it as a hole, excluded only if all exclude it."""
    owners = _owners(estates)
    entries: dict[str, list[IndexEntry]] = {}
    for estate in estates:
        for one in estate.buckets:
            entries.setdefault(one.bucket, []).append(_entry(one, estate.estate, runs, owners))
    for several in entries.values():
        yield min(several, key=lambda one: 0 if one.failed is not None else 2 if one.excluded is not None else 1)


def _entry(
    one: BucketResult, estate: str, runs: Mapping[str, IndexEntry], owners: Mapping[str | None, str]
) -> IndexEntry:
    """Return the entry of a bucket. estate: ID of the start that reports it. owners: words for the accounts."""
    found = runs.get(one.bucket) or IndexEntry(target=Target(one.bucket))
    found = replace(found, account=owners.get(one.account, ""))
    run = found.summary.run if found.summary is not None else None
    ended = run is not None and (run == one.run or began_later(run, estate))
    if one.outcome is BucketOutcome.EXCLUDED:
        return IndexEntry(target=found.target, excluded=one.sentence, account=found.account)
    if one.outcome is BucketOutcome.HOLE and not ended:
        return replace(found, failed=one.sentence)
    return found


def _lost_accounts(estates: Sequence[EarlierEstate]) -> list[AccountResult]:
    """Return the accounts that are holes, without those that a later start has listed. estates: the newest first."""
    listed: dict[str, str] = {}
    lost: dict[str | None, AccountResult] = {}
    for estate in estates:
        for one in estate.accounts:
            if one.hole is None and one.account is not None:
                listed.setdefault(one.account, estate.estate)
            elif one.hole is not None and not began_later(listed.get(one.account or "", ""), estate.estate):
                lost.setdefault(one.account, one)
    return list(lost.values())


def _lost(accounts: Sequence[AccountResult]) -> Iterator[IndexEntry]:
    for one in accounts:
        if one.hole is not None:
            yield IndexEntry(target=Target("account"), label=one.words, failed=one.hole)
