"""The flag --jobs of `auditor audit`: audit the ranges of a target in several processes."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from auditor.aio.stop import Stop
from auditor.audit.run import Audit
from auditor.config.resources import Resources
from auditor.config.settings import Settings
from auditor.errors import UsageError
from auditor.model.target import Target
from auditor.runs.plan_file import load_plan

if TYPE_CHECKING:
    from auditor.audit.divided.jobs import JobsAudit

MOST: Final = 64
"""Largest number of processes."""


def check_jobs(options: argparse.Namespace) -> None:
    """Raise UsageError unless the number of processes is one that can be."""
    jobs = options.jobs
    if jobs is not None and not 1 <= jobs <= MOST:
        raise UsageError(f"--jobs {jobs} is not possible: give a number of processes from 1 to {MOST}")


async def audit_of(
    target: Target,
    settings: Settings,
    places: Resources,
    stop: Stop,
    *,
    jobs: int | None,
    began: Callable[[str], None],
    run_id: str | None,
    resume: bool,
) -> Audit | JobsAudit:
    """Return the audit of a target: in one process, or in several. A divided run is resumed as one, with any number of
    processes. The parameters are those of Audit.
    """
    divided = (jobs or 1) > 1
    if resume and run_id is not None:
        divided |= await asyncio.to_thread(load_plan, places.store, target.bucket, run_id) is not None
    if not divided:
        return Audit(target, settings, places, stop, began=began, run_id=run_id, resume=resume)
    from auditor.audit.divided.jobs import JobsAudit  # imports thirty modules; few audits are divided

    return JobsAudit(target, settings, places, stop, jobs=jobs or 1, began=began, run_id=run_id, resume=resume)
