"""How the audits of a command differ: those of the named targets, and those of an estate's buckets."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Protocol

from auditor.aio.stop import Stop
from auditor.audit.run import Audit
from auditor.cli.audit_output import announce, remark_on
from auditor.cli.telling import Teller
from auditor.config.resources import Resources
from auditor.config.settings import Settings
from auditor.model.summary import Summary
from auditor.model.target import Target
from auditor.reports.alert import alert_of
from auditor.reports.run_event import event_of

if TYPE_CHECKING:
    from auditor.audit.divided.jobs import JobsAudit


class AuditWay(Protocol):
    """Answers the questions on which the audits of a command differ."""

    def settings_of(self, target: Target) -> Settings:
        """Return the settings of a target's run."""

    async def run_of(self, target: Target, resources: Resources) -> tuple[str | None, bool]:
        """Return the ID of a target's run, None for a new one, and True if that run is to be resumed."""

    def begin(self, target: Target, stop: Stop) -> None:
        """Note that the audit of a target begins. stop: ends it."""

    def announce(self, target: Target, run_id: str) -> None:
        """Tell the user that a target's run has begun."""

    def remark_on(self, summary: Summary, target: Target) -> None:
        """Tell the user what is to be said about the end of a target's run."""

    async def tell(self, audit: Audit | JobsAudit, summary: Summary) -> None:
        """Send the alert and the event on a run."""

    def failed(self, sentence: str, code: int) -> int:
        """Note the failure of a target for the alert at the end, and return the target's exit code."""


class NamedTargets:
    """The audits of the targets that the command line names."""

    def __init__(self, settings: Settings, options: argparse.Namespace, teller: Teller) -> None:
        self._settings = settings
        self._options = options
        self._teller = teller

    def settings_of(self, target: Target) -> Settings:
        return self._settings

    async def run_of(self, target: Target, resources: Resources) -> tuple[str | None, bool]:
        return self._options.resume, self._options.resume is not None

    def begin(self, target: Target, stop: Stop) -> None:
        """Do nothing: the command says itself why it stops."""

    def announce(self, target: Target, run_id: str) -> None:
        announce(target, run_id)

    def remark_on(self, summary: Summary, target: Target) -> None:
        remark_on(summary, target, self._options)

    async def tell(self, audit: Audit | JobsAudit, summary: Summary) -> None:
        if not self._teller.listens:
            return
        fail_on, notes = self._settings.fail_on, [audit.unsent] if audit.unsent else []
        alert = alert_of(summary, audit.rollups, fail_on, notes)
        await self._teller.tell(alert, event_of(summary, fail_on, notes))

    def failed(self, sentence: str, code: int) -> int:
        self._teller.failed(sentence)
        return code
