"""The differences between the audits of a command, and the words on stderr at the begin and at the end of an audit."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from auditor.aio.stop import Stop
from auditor.audit.run import Audit
from auditor.cli.output import remark, say
from auditor.cli.resume_hint import offer_to_resume
from auditor.cli.telling import Teller
from auditor.config.resources import Resources
from auditor.config.settings import Settings
from auditor.model.alert import Alert
from auditor.model.summary import Summary
from auditor.model.target import Target
from auditor.reports.alert import alert_of
from auditor.reports.run_event import event_of
from auditor.text import visible

if TYPE_CHECKING:
    from auditor.audit.divided.jobs import JobsAudit


class AuditWay:
    """Answers the questions on which the audits of a command differ: here, for the targets of the command line."""

    def __init__(self, settings: Settings, options: argparse.Namespace, teller: Teller) -> None:
        self._settings = settings
        self._options = options
        self._teller = teller

    def settings_of(self, target: Target) -> Settings:
        """Return the settings of a target's run."""
        return self._settings

    async def run_of(self, target: Target, resources: Resources) -> tuple[str | None, bool]:
        """Return the ID of a target's run, None for a new one, and True if that run is to be resumed."""
        return self._options.resume, self._options.resume is not None

    def begin(self, target: Target, stop: Stop) -> None:
        """Note that the audit of a target begins. stop: ends it."""

    def announce(self, target: Target, run_id: str) -> None:
        """Tell the user that a target's run has begun."""
        announce(target, run_id)

    def remark_on(self, summary: Summary, target: Target) -> None:
        """Tell the user what is to be said about the end of a target's run."""
        remark_on(summary, target, self._options)

    async def tell(self, audit: Audit | JobsAudit, summary: Summary) -> None:
        """Send the alert and the event on a run."""
        if self._teller.listens:
            fail_on, notes = self._settings.fail_on, [audit.unsent] if audit.unsent else []
            alert = self.alert_now(alert_of(summary, audit.rollups, fail_on, notes))
            await self._teller.tell(alert, event_of(summary, fail_on, notes))

    def alert_now(self, alert: Alert | None) -> Alert | None:
        """Return the alert to send at the end of a run; None to send none."""
        return alert

    def failed(self, sentence: str, code: int) -> int:
        """Note the failure of a target for the alert at the end, and return the target's exit code."""
        self._teller.failed(sentence)
        return code


def announce(target: Target, run_id: str) -> None:
    """Print the run's ID at the beginning, because the user needs it to resume a run that was killed."""
    remark(f"{visible(target.uri)}: run {run_id}")


def remark_on(summary: Summary, target: Target, options: argparse.Namespace) -> None:
    """Tell the user how to resume a run that did not end, or what to check if nothing is listed."""
    if (resume := summary.resume) is not None:
        offer_to_resume(resume.reason or "it was stopped", options, target, resume.run)
    elif not summary.coverage.listed and not summary.coverage.delete_markers:
        check = "check the prefix" if target.prefix else "the bucket is empty"
        hint = check if target.whole else "check the prefix and the key range"
        if summary.nothing_listed:
            hint = f"{hint}, or allow it by --allow-empty"
        if "*" in target.prefix:
            begin = f"s3://{target.bucket}/{visible(target.prefix.partition('*')[0])}"
            hint = f"`*` is a character of a key here, no wildcard: write all that the keys begin with, {begin}"
        say(f"nothing is listed under {visible(target.uri)}: {hint}")
