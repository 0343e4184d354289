"""Audit the targets of one start: in this process or in several, and under limits that the targets share."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final

from msgspec.structs import replace

from auditor.aio.stop import Stop
from auditor.audit.audit_run import Audit
from auditor.audit.limits import Limits
from auditor.config.resources import Resources, open_stores
from auditor.config.settings import Settings
from auditor.errors import RunStopped, UsageError
from auditor.model.summary import Summary
from auditor.model.target import Target
from auditor.s3.rate import RateLimit
from auditor.text import visible

MOST_JOBS: Final = 64
"""Largest number of processes."""


def check_jobs(jobs: int | None, name: str) -> None:
    """Raise UsageError unless this number of processes is possible. name: of the flag or parameter."""
    if jobs is not None and (type(jobs) is not int or not 1 <= jobs <= MOST_JOBS):
        raise UsageError(f"{name} {str(jobs)[:100]} is not valid: give a number of processes from 1 to {MOST_JOBS}")


class AuditStart:
    """Audits the targets of a start. Several targets share the limits of calls per second, of calls, and of dollars.

    jobs: number of processes that audit each target; None for this one alone. several: True to treat one target as
    several, as an estate of one bucket does; more than one always are.
    """

    def __init__(
        self, settings: Settings, targets: Sequence[Target], jobs: int | None = None, *, several: bool = False
    ) -> None:
        self.several = several or len(targets) > 1
        self._settings = settings
        self._jobs = jobs
        self._left = Limits.of(settings)
        self._ceiling = RateLimit(settings.max_rate) if self.several and settings.max_rate else None
        self.at_once = 1 if jobs is not None else min(self._left.targets_at_once, max(1, len(targets)))
        """Number of targets to audit side by side."""

    @asynccontextmanager
    async def resources_of(self, target: Target, shared: Resources) -> AsyncIterator[Resources]:
        """Yield the resources of one target: among several it has a store of its own, because the thread of its run
        writes to that. Raises RunStopped if a limit is used up.
        """
        if not self.several:
            yield shared
            return
        if flag := self._left.spent:
            raise RunStopped(f"{visible(target.uri)} was not audited: {flag} is used up")
        async with open_stores(self._settings, [target]) as own:
            yield replace(shared, store=own.store, manifests=own.manifests, ceiling=self._ceiling)

    def audit_of(
        self,
        target: Target,
        settings: Settings,
        resources: Resources,
        stop: Stop,
        *,
        run_id: str | None,
        resume: bool,
        began: Callable[[str], None] | None = None,
    ) -> Audit:
        """Return the audit of a target, within the limits that are left. The parameters are those of Audit."""
        settings = self._left.within(settings)
        return Audit(target, settings, resources, stop, jobs=self._jobs, began=began, run_id=run_id, resume=resume)

    async def run(self, audit: Audit) -> Summary:
        """Run an audit of audit_of(), and return its summary. Its limits are then those of the next target."""
        try:
            return await audit.run()
        finally:
            self._left = audit.left
