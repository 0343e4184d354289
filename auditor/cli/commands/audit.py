"""The command `auditor audit`: its flags. The modules that audit are imported when it runs, never for its help page."""

from __future__ import annotations

import argparse
from importlib import import_module

from auditor.cli.flags import OBJECTS, PACE, RESULTS, RUN, Flags, whole_number
from auditor.offline.formats import PRINTED


def declare_audit(flags: Flags) -> None:
    """Declare the flags of `auditor audit`.

    auditor audit s3://my-bucket
    auditor audit s3://my-bucket/2026/ --versions --fail-on new:high
    auditor audit s3://my-bucket --jobs 4 --source mixed
    auditor audit --estate estate.toml --out s3://reports/audits
    """
    flags.show_daily("all-buckets versions ignore fail-on ledger hash max-rate out resume format profile config")
    flags.audited()
    flags.add("--resume RUN", "continue this interrupted run: its ID, or the path or URI of its folder", RESULTS)
    flags.add("--fill RUN", f"read again the facts that this complete run could not read: {RUN}", OBJECTS)
    jobs = "audit the ranges of a bucket in N processes that share --max-rate (1)"
    flags.add("--jobs N", jobs, PACE, type=whole_number)
    flags.settings("max_cost", "keep", "every")
    flags.form(PRINTED)


def run_audit(options: argparse.Namespace) -> int:
    """Audit the targets, an estate, or what a run could not read, and return the exit code."""
    estate = options.all_buckets or options.estate is not None
    way = "estate" if estate else "audits" if options.fill is None else "fill"
    code: int = import_module(f"auditor.cli.{way}").run(options)
    return code
