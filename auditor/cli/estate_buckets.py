"""The buckets of one start of an estate: each is audited with the credentials of its account, by a run of the start."""

from __future__ import annotations

import argparse
import asyncio
import hashlib
from collections.abc import Sequence

from auditor.aio.stop import Stop
from auditor.audit.estate.balance import HOLE
from auditor.audit.estate.choice import ChosenBucket
from auditor.cli.audit_way import AuditWay
from auditor.cli.telling import Teller
from auditor.config.resources import Resources
from auditor.config.settings import Settings
from auditor.model.alert import Alert
from auditor.model.summary import Summary
from auditor.model.target import Target
from auditor.runs.paths import new_run_id, parse_run_id
from auditor.runs.reading import RunReader


class EstateBuckets(AuditWay):
    """The way in which the buckets of an estate are audited.

    estate: ID of the start. buckets: those to audit. teller: sends the event on each run; the alerts are kept for the
    one of the estate.
    """

    def __init__(
        self,
        settings: Settings,
        options: argparse.Namespace,
        estate: str,
        buckets: Sequence[ChosenBucket],
        teller: Teller,
    ) -> None:
        super().__init__(settings, options, teller)
        self._estate = estate
        self._buckets = {one.name: one for one in buckets}
        self._stop: Stop | None = None
        self.targets = [Target(one.name, versions=settings.versions) for one in buckets]
        self.begun: dict[str, str] = {}
        """By bucket, the ID of its run once that has begun."""
        self.alerts: list[Alert] = []

    @property
    def stopped(self) -> str | None:
        """Why the work was stopped by a signal; None if it was not."""
        return self._stop.reason if self._stop else None

    def settings_of(self, target: Target) -> Settings:
        return self._buckets[target.bucket].owner.settings(self._settings)

    async def run_of(self, target: Target, resources: Resources) -> tuple[str | None, bool]:
        account = self._buckets[target.bucket].owner.account.id
        text = f"{self._estate}\0{account}\0{target.bucket}\0{target.versions}"
        run = new_run_id(parse_run_id(self._estate), hashlib.sha256(text.encode()).digest())
        if self._options.resume is None:
            return run, False
        return run, await asyncio.to_thread(lambda: RunReader(resources.store, target.bucket, run).exists)

    def begin(self, target: Target, stop: Stop) -> None:
        self._stop = stop

    def announce(self, target: Target, run_id: str) -> None:
        super().announce(target, run_id)
        self.begun[target.bucket] = run_id

    def remark_on(self, summary: Summary, target: Target) -> None:
        """Say nothing: the report has each bucket, and one command resumes all."""

    def alert_now(self, alert: Alert | None) -> None:
        """Keep the alert for the one of the estate."""
        if alert is not None:
            self.alerts.append(alert)

    def failed(self, sentence: str, code: int) -> int:
        """Return the exit code of a hole, whatever the reason. The one alert names each hole."""
        return HOLE
