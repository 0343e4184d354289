"""Begin the audit that fills a run, or continue it."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from datetime import UTC, datetime

from auditor.aio.stop import Stop
from auditor.audit.audit_run import Audit
from auditor.audit.fill import Filling
from auditor.config.resources import Resources
from auditor.config.settings import Settings
from auditor.runs.paths import later_run_id, new_run_id
from auditor.runs.reading import RunReader
from auditor.runs.segment import PART_LINES


def fill_audit(
    run: RunReader,
    settings: Settings,
    places: Resources,
    stop: Stop,
    *,
    began: Callable[[str], None] | None = None,
    resume: str | None = None,
    part_lines: int = PART_LINES,
) -> Audit:
    """Return the audit that fills a run. Blocks a moment to read the run's files.

    The new run has the filled run's target, configuration and time of judging, and is written beside it. Objects of
    which all was read keep their lines, unless a fact of the bucket is known now that was not.

    run: a complete run, with its files. settings: connection and pace; the rest comes from the run. places: the store
    of the run folders. resume: ID of an earlier fill of the same run, to continue it. Raises UsageError if the run
    cannot be filled.
    """
    filling = Filling(run, settings)
    return Audit(
        filling.file.target,
        filling.settings,
        places,
        stop,
        filling=filling,
        began=began,
        run_id=resume or later_run_id(new_run_id(datetime.now(UTC), secrets.token_bytes(3)), run.run_id),
        resume=resume is not None,
        part_lines=part_lines,
    )
