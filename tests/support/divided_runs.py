"""Runs of several ranges, for tests: begun, audited range by range in this process, and concluded."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from auditor.aio.stop import Stop
from auditor.audit.audit_run import Audit, RangeAudit
from auditor.audit.begin_run import Division
from auditor.audit.conclude_run import conclude_run
from auditor.config.resources import Resources
from auditor.config.settings import Settings
from auditor.ledger.base import Ledger
from auditor.model.summary import Resume, Summary
from auditor.model.target import Target
from auditor.runs.paths import run_path
from auditor.runs.run_files import RunPlan
from auditor.runs.segment import PART_LINES
from auditor.runs.stores.base import Store
from auditor.runs.stores.local import LocalStore
from tests.support.audit_runs import Result, check, read_back
from tests.support.servers.clients import BUCKET
from tests.support.servers.stub import StubServer


class Divided:
    """One run of several ranges of the stub's bucket below `out`."""

    def __init__(
        self,
        stub: StubServer,
        out: Path,
        *,
        target: Target | None = None,
        store: Store | None = None,
        ledger: Ledger | None = None,
        **settings: Any,
    ) -> None:
        self.stub = stub
        self.out = out
        told = {"endpoint_url": stub.url, "out": str(out), "max_rate": None, "concurrency": 16, **settings}
        self.settings = Settings(**told)
        self.target = target or Target(BUCKET, versions=self.settings.versions)
        self.places = Resources(store=store or LocalStore(out), ledger=ledger)
        self.run_id: str | None = None

    @property
    def folder(self) -> Path:
        assert self.run_id is not None
        return self.out / run_path(self.target.bucket, self.run_id)

    async def begin(self, ranges: int, run_id: str | None = None, stop: Stop | None = None) -> RunPlan:
        audit = Audit(
            self.target,
            self.settings,
            self.places,
            Stop() if stop is None else stop,
            run_id=run_id,
            division=Division(ranges, least=1),
        )
        plan = await audit.begin()
        self.run_id = plan.run
        return plan

    async def audit(self, range_id: str, *, part_lines: int = PART_LINES, stop: Stop | None = None) -> Resume | None:
        assert self.run_id is not None
        work = RangeAudit(
            self.run_id,
            range_id,
            self.target,
            self.settings,
            self.places,
            Stop() if stop is None else stop,
            part_lines=part_lines,
        )
        return await work.run()

    async def combine(self) -> Summary:
        assert self.run_id is not None
        done = await asyncio.to_thread(conclude_run, self.target, self.run_id, self.settings, self.places)
        return done.summary

    async def whole(self, ranges: int, *, part_lines: int = PART_LINES) -> Result:
        """Begin, audit the ranges side by side, the last one first, conclude, and check what must hold of any run."""
        plan = await self.begin(ranges)
        await self.ranges(reversed([one.id for one in plan.ranges]), part_lines=part_lines)
        return check(read_back((await self.combine()).to_dict()))

    async def ranges(self, range_ids: Iterable[str], *, part_lines: int = PART_LINES) -> None:
        async with asyncio.TaskGroup() as group:
            for one in range_ids:
                group.create_task(self.audit(one, part_lines=part_lines))
