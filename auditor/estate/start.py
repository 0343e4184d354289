"""Audit the targets of one start: in this process or in several, and under limits that the targets share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from auditor.aio.stop import Stop
from auditor.aio.tasks import task_group
from auditor.audit.audit_run import Audit
from auditor.audit.limits import Limits
from auditor.config.resources import Resources, open_stores
from auditor.config.settings import Settings
from auditor.errors import RunStopped, UsageError
from auditor.estate.accounts import open_accounts
from auditor.estate.files import EstateFiles, folder_of
from auditor.estate.index import NAME as INDEX
from auditor.estate.report import Estate
from auditor.estate.select_buckets import choose, places_of
from auditor.model.estate import EarlierEstate, EstateAccount
from auditor.model.summary import Summary
from auditor.model.target import Target
from auditor.s3.rate import RateLimit
from auditor.text import visible

T = TypeVar("T")

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


async def each(items: Sequence[T], at_once: int, stop: Stop, work: Callable[[T], Awaitable[None]]) -> None:
    """Do the work for each item, some side by side, until all are done or the stop. at_once: largest number at once."""
    waiting = iter(items)

    async def some() -> None:
        while not stop and (one := next(waiting, None)) is not None:
            await work(one)

    async with task_group() as group:
        for _ in range(min(at_once, len(items))):
            group.create_task(some())


class OpenedEstate(Struct, frozen=True):
    """A start of an estate: its buckets as they are listed now, and its files."""

    estate: Estate
    files: EstateFiles

    @property
    def index(self) -> str:
        """The path of the index page in the store."""
        return f"{self.files.folder}/{INDEX}"


async def open_estate(
    start: str,
    name: str | None,
    accounts: Sequence[EstateAccount],
    settings: Settings,
    stores: Resources,
    stop: Stop,
    before: Callable[[EstateFiles], tuple[EarlierEstate | None, EarlierEstate | None]],
) -> OpenedEstate:
    """List the buckets of the accounts, and choose among them.

    start: ID of the start. name: that of the estate's file; None for every bucket of one account. before: returns the
    report of this start as an earlier process left it, and that of the start before.
    """
    opened = await open_accounts(accounts, settings, stop)
    numbers = [one.account.id for one in opened]
    files = EstateFiles(stores.store, folder_of(name, numbers[0]), numbers)
    own, earlier = await asyncio.to_thread(before, files)
    day = datetime.now(UTC).date().isoformat()
    estate = Estate(
        estate=start,
        out=stores.store.uri(),
        folder=files.folder,
        opened=opened,
        choice=choose(opened, day, places_of(stores)),
        earlier=earlier,
        own=own,
    )
    return OpenedEstate(estate, files)
