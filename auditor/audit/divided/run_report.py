"""The S3 Inventory report whose rows are spread over the ranges of a run: how far, what it leaves out, and its end."""

from __future__ import annotations

import logging

from auditor.audit.mixed.report_origin import unseen_words
from auditor.audit.mixed.spread_file import NAME, SpreadFolder
from auditor.errors import OutputError
from auditor.runs.paths import run_path
from auditor.runs.stores.base import Store

log = logging.getLogger(__name__)


def files_spread(store: Store, bucket: str, run_id: str) -> int:
    """Return the number of data files of the report that are spread so far. Blocks."""
    found = SpreadFolder(store, run_path(bucket, run_id), run_id).load()
    return 0 if found is None else found.done


class RunReport:
    """The report of a run that is summed up. path: of the run folder in its store. Blocks."""

    def __init__(self, store: Store, path: str, run_id: str) -> None:
        self._folder = SpreadFolder(store, path, run_id)
        self._spread = self._folder.load()

    def unseen_words(self, unreported: int, *, mixed: bool) -> list[str]:
        """Return phrases on what the run did not look at. unreported: Tally.unreported. mixed: True if the run is to
        take facts from a report.
        """
        if self._spread is not None:
            return unseen_words(self._spread.origin, unreported)
        return [f"what the S3 Inventory report of the run was: {NAME} is gone"] if mixed else []

    def forget(self) -> None:
        """Delete the spread rows, which nothing needs after the run."""
        if self._spread is None:
            return
        try:
            self._folder.clear()
        except OutputError as error:
            log.warning("the inventory report's rows stay in the run folder: %s", error)
