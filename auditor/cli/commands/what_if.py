"""The command `auditor what-if`."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
from typing import Final

from auditor.audit.what_if import WhatIf, WhatIfQuestion, lines_to, read_policy
from auditor.cli import signals
from auditor.cli.options import settings_of
from auditor.cli.output import print_result, print_text
from auditor.cli.progress import shown
from auditor.cli.reading import reading
from auditor.cli.terminal import columns
from auditor.config import values
from auditor.config.settings import Settings
from auditor.errors import UsageError
from auditor.reports.formats.sarif import as_sarif
from auditor.verdict.change import BucketChange, switches
from auditor.verdict.policy_text import statement_lines

_NO_FILE: Final = "SARIF says at which lines of a policy file objects are opened: add --policy FILE"


def run(options: argparse.Namespace) -> int:
    """Ask the run what the change does, print the answer, and return its exit code."""
    if options.format == "sarif" and options.policy is None:
        raise UsageError(_NO_FILE)
    settings, change = settings_of(options), change_from(options)
    found = signals.run(_ask(options, settings, change))
    _print(found, options)
    return found.exit_code


async def _ask(options: argparse.Namespace, settings: Settings, change: BucketChange) -> WhatIf:
    stop = signals.stop_on_signals()
    with reading(options.run_folder, settings) as opened, lines_to(options.keys) as sink:
        question = WhatIfQuestion(opened, change, policy_name=options.policy, sink=sink, stopped=stop.is_set)
        async with shown(question.snapshot):
            return await asyncio.to_thread(question.answer)


def change_from(options: argparse.Namespace) -> BucketChange:
    """Return the change that the flags name. Raises UsageError for a policy file that is none, and for a wrong entry of
    --trust.
    """
    policy = "" if options.no_policy else None
    if options.policy is not None:
        policy = read_policy(options.policy)
    entries = [entry for text in options.trust or () for entry in values.words(text, "--trust")]
    return BucketChange(
        acls=options.acls,
        policy=policy,
        block=options.block,
        switches=switches(acls=options.ignore_public_acls, policies=options.restrict_public_policy),
        requester_pays=bool(options.requester_pays),
        trusted=values.trusted(entries, "--trust"),
    )


def _print(found: WhatIf, options: argparse.Namespace) -> None:
    if options.format == "sarif":
        log = as_sarif(found.counts, _below_here(options.policy), statement_lines(found.change.policy or ""))
        print_text(json.dumps(log, indent=1) + "\n")
    else:
        print_result(options.format, found.to_dict(), lambda: found.table(columns()))


def _below_here(path: str) -> str:
    """Return the path of a file relative to the working directory, with slashes; its name alone if it is elsewhere."""
    relative = os.path.relpath(path)
    return os.path.basename(path) if relative.startswith(os.pardir) else relative.replace(os.sep, "/")
