"""The command `auditor audit`."""

from __future__ import annotations

import argparse

from auditor.audit.resume import rules_of
from auditor.cli import signals
from auditor.cli.audit_way import AuditWay
from auditor.cli.audits import Audits
from auditor.cli.jobs import check_jobs
from auditor.cli.options import settings_of, targets_of
from auditor.cli.telling import Teller
from auditor.errors import UsageError


def run(options: argparse.Namespace) -> int:
    settings = settings_of(options)
    if options.all_buckets or options.estate is not None:
        from auditor.cli.estate import audit_estate  # imports twenty modules; few audits are of an estate

        return audit_estate(options, settings)
    if options.fill is not None:
        from auditor.cli.fill import fill  # imports twenty modules; few audits fill a run

        return fill(options, settings)
    check_jobs(options)
    targets = targets_of(options, settings)
    rules_of(settings, ledger=settings.ledger is not None)
    if options.resume and len(targets) > 1:
        raise UsageError("--resume goes on with one run: give its one target")
    teller = Teller(settings, "audit")
    audits = Audits(settings, options, targets, AuditWay(settings, options, teller))
    code = signals.run(teller.around(audits.indexed()))
    audits.close()
    return code
