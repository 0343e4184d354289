"""Open the run folder that a command reads."""

from __future__ import annotations

from contextlib import AbstractContextManager

from auditor.cli.output import first_word
from auditor.config.settings import Settings
from auditor.runs.folder_place import latest_place, open_run
from auditor.runs.reading import RunReader
from auditor.text import visible


def reading(place: str, settings: Settings) -> AbstractContextManager[RunReader]:
    """Tell the user that the run is read, and open it. place: path or URI of its folder, or a target, whose latest
    complete run below `out` it is. Raises UsageError for another place, and if no run is there.
    """
    first_word(f"reading the run {visible(place)}")
    return open_run(latest_place(place, settings.out, **settings.connection), **settings.connection)
