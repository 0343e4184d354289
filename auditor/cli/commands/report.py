"""The command `auditor report`."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from urllib.parse import quote

from auditor.audit.estate.page import entries_beside
from auditor.audit.index import NAME as INDEX
from auditor.audit.index import entries_in, index_text, write_index
from auditor.audit.stored_page import page_again
from auditor.cli.each_target import HOLE
from auditor.cli.options import settings_of
from auditor.cli.output import first_word, say
from auditor.config.settings import Settings
from auditor.errors import OutputError, UsageError
from auditor.runs.folder_place import is_run_folder, open_run
from auditor.runs.reading import RunReader
from auditor.runs.stores import open_store
from auditor.runs.stores.local import private
from auditor.text import visible


def run(options: argparse.Namespace) -> int:
    """Make the page of a run, or the index page of a place of runs, again, and write it. Return 4 for a run that is not
    complete, else 0.
    """
    settings, place = settings_of(options), options.run_folder
    first_word(f"reading the run {visible(place)}")
    if Path(place).is_file():
        raise UsageError(f"{place[:200]!r} is a file: give a run folder, OUT/bucket=BUCKET/run=ID, or an OUT")
    if not is_run_folder(place):
        return _index(place, options.file, settings)
    file = options.file or "report.html"
    with open_run(place, **settings.connection) as opened:
        page = page_again(opened, _index_beside(opened, file))
        complete = opened.complete
    _written(page, file)
    if complete:
        return 0
    say(f"{visible(place)} is a run that has not ended: its page is of what is listed so far")
    return HOLE


def _index_beside(run: RunReader, file: str) -> str | None:
    """Return the address of the index page of the run's place, relative to the run's page in `file`; None if there is
    none, or if the run is in a bucket.
    """
    index = Path(run.store.uri()) / INDEX
    if run.store.bucket is not None or not index.is_file():
        return None
    folder = run.uri if file == "-" else os.path.dirname(os.path.abspath(file))
    return quote(os.path.relpath(index, folder))


def _index(place: str, file: str | None, settings: Settings) -> int:
    with open_store(place, **settings.connection) as store:
        entries, estates = entries_beside(store, entries_in(store))
        if not entries:
            raise UsageError(
                f"there is no complete run at {place[:200]!r}: give a run folder, OUT/bucket=BUCKET/run=ID, or an OUT"
                " that has some"
            )
        if file is not None:
            _written(index_text(entries, store.uri(), estates), file)
        else:
            sys.stdout.write(f"{visible(write_index(store, entries, estates))}\n")
    return 0


def _written(page: str, file: str) -> None:
    """Write a page to the file that the user names, or to stdout for "-"."""
    if file == "-":
        sys.stdout.write(page)
        return
    try:
        with open(file, "w", encoding="utf-8", opener=private) as written:
            written.write(page)
    except (OSError, ValueError) as error:
        raise OutputError(f"{file!r} cannot be written ({error}): give another --out") from error
    sys.stdout.write(f"{visible(file)}\n")
