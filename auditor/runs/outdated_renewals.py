"""Delete the renewals of a bucket that no audit needs any more."""

from __future__ import annotations

import logging
from datetime import timedelta
from functools import partial
from itertools import islice
from typing import Final

from auditor.aio.threads import in_order
from auditor.errors import OutputError
from auditor.model.dates import iso_date, seconds_in_utc
from auditor.runs.latest import latest_runs
from auditor.runs.paths import began_at
from auditor.runs.renewals import renewal_files
from auditor.runs.stores.base import Store
from auditor.text import visible

log = logging.getLogger(__name__)

SPARED: Final = timedelta(days=1)
"""Renewals of this time before the oldest of the last runs are spared: an audit that began before one of these ended
may still read them."""
MOST: Final = 2_000
"""Largest number of files that one run deletes, which takes a few seconds. The next run deletes further ones."""
_AT_ONCE: Final = 16


def delete_outdated(store: Store, bucket: str) -> int:
    """Delete the files of renewals that every target's last complete run has taken in, and return their number. Blocks.

    A run takes in what was read before it began: it lists everything anew. So a file is outdated if the last complete
    runs of all targets of the bucket began after it. If this fails, the log says so, and the next run does it.
    """
    try:
        began = [began_at(run.run_id) for run in latest_runs(store, bucket)]
        if not began:
            return 0
        before = seconds_in_utc(iso_date(min(began)) - SPARED)
        outdated = (path for at, path in renewal_files(store, bucket, "") if at < before)
        return sum(1 for _ in in_order((partial(store.delete, path) for path in islice(outdated, MOST)), _AT_ONCE))
    except OutputError as error:
        log.warning("outdated renewals of the bucket %s were not all deleted: %s", bucket, visible(str(error)))
        return 0
