"""Open the run folder that a command reads."""

from __future__ import annotations

from contextlib import AbstractContextManager

from auditor.cli.output import first_word
from auditor.config.settings import Settings
from auditor.runs.folder_place import open_run
from auditor.runs.reading import RunReader
from auditor.text import visible


def reading(place: str, settings: Settings) -> AbstractContextManager[RunReader]:
    """Tell the user that the run is read, and open it. place: path or URI of its folder. Raises UsageError for another
    place, and if no run is there.
    """
    first_word(f"reading the run {visible(place)}")
    return open_run(place, **settings.connection)
