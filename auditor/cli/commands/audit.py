"""The command `auditor audit`."""

from __future__ import annotations

from typing import Final

from auditor.audit.resume import rules_of
from auditor.cli import signals
from auditor.cli.audits import Audits
from auditor.cli.command_frame import CommandFrame, command
from auditor.cli.flags import OBJECTS, PACE, RESULTS, Flags, whole_number
from auditor.cli.telling import Teller
from auditor.errors import UsageError
from auditor.reports.formats import PRINTED

MOST_JOBS: Final = 64
"""Largest number of processes."""


def declare_audit(flags: Flags) -> None:
    """Declare the flags of `auditor audit`.

    auditor audit s3://my-bucket
    auditor audit s3://my-bucket/2026/ --versions --fail-on new:high --out s3://reports/audits
    auditor audit s3://my-bucket --jobs 4 --source mixed
    auditor audit --estate estate.toml --out s3://reports/audits
    """
    flags.show_daily("all-buckets versions ignore fail-on ledger hash max-rate out resume format profile config")
    flags.audited()
    flags.add("--resume RUN", "go on with this interrupted run, in its folder", RESULTS)
    fill = "read again what this complete run could not read; RUN is its folder, a path or URI"
    flags.add("--fill RUN", fill, OBJECTS)
    jobs = "audit the ranges of a bucket in N processes, under one --max-rate (1)"
    flags.add("--jobs N", jobs, PACE, type=whole_number)
    flags.settings("max_cost", "keep", "every")
    flags.form(PRINTED)


@command()
def run_audit(frame: CommandFrame) -> int:
    """Audit the targets, an estate, or what a run could not read, and return the exit code."""
    options, settings = frame.options, frame.settings
    if options.fill is not None and not (options.all_buckets or options.estate):
        from auditor.cli.fill import fill  # imports fourteen modules; few audits fill a run

        return fill(frame)
    if options.jobs is not None and not 1 <= options.jobs <= MOST_JOBS:
        raise UsageError(f"--jobs {options.jobs} is not possible: give a number of processes from 1 to {MOST_JOBS}")
    rules_of(settings, ledger=settings.ledger is not None)
    if options.all_buckets or options.estate is not None:
        from auditor.cli.estate import audit_estate  # imports thirteen modules; few audits are of an estate

        return audit_estate(frame)
    if options.resume and len(frame.targets) > 1:
        raise UsageError("--resume goes on with one run: give its one target")
    teller = Teller(settings, "audit")
    audits = Audits(frame, frame.targets, teller)
    code = signals.run(teller.around(audits.indexed()))
    audits.close()
    return code
