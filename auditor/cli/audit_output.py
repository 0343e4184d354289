"""The words on stderr at the beginning and at the end of an audit."""

from __future__ import annotations

import argparse

from auditor.cli.output import remark, say
from auditor.cli.resume_hint import offer_to_resume
from auditor.model.summary import Summary
from auditor.model.target import Target
from auditor.text import visible


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


def announce(target: Target, run_id: str) -> None:
    """Print the run's ID at the beginning, because the user needs it to resume a run that was killed."""
    remark(f"{visible(target.uri)}: run {run_id}")
