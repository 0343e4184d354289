"""The command `auditor accept`."""

from __future__ import annotations

import argparse
import re
from datetime import UTC, datetime, timedelta
from typing import Final

from auditor.cli.options import settings_of
from auditor.cli.output import print_text, say
from auditor.cli.reading import reading
from auditor.config.exceptions import EXCEPTIONS
from auditor.config.file import read
from auditor.errors import UsageError
from auditor.model.rollup import Group, RollUps
from auditor.model.run_lines import FindingLine
from auditor.reports.accept import entry_for
from auditor.reports.accept_group import entries_for_group
from auditor.runs.reading import RunReader
from auditor.text import visible

_GROUP: Final = re.compile("[0-9a-f]{12}")
DAYS: Final = 90
"""Number of days for which the printed entry holds if --until is not given."""


def run(options: argparse.Namespace) -> int:
    """Print an entry of [[exceptions]] that covers the finding or the group."""
    settings = settings_of(options)
    until = options.until or (datetime.now(UTC).date() + timedelta(DAYS)).isoformat()
    _check(options, until)
    with reading(options.run_folder, settings) as opened:
        name, words = options.accepted.lower(), {"owner": options.owner, "reason": options.reason, "until": until}
        if _GROUP.fullmatch(name):
            text, number = entries_for_group(opened, *_group(opened, name), **words)
        else:
            text, number = entry_for(_finding(opened, name), opened.bucket_name, **words), 1
    print_text(text)
    blank = [name for name in ("owner", "reason") if not getattr(options, name)]
    fill = f"fill in {' and '.join(blank)}, then " if blank else ""
    say(f"{fill}append this to auditor.toml" + (f": it covers {number:,} of this run" if number > 1 else ""))
    return 0


def _check(options: argparse.Namespace, until: str) -> None:
    """Raise UsageError for an owner, a reason or a day that auditor.toml may not have."""
    entry = {"rule": "O02", "owner": options.owner or "owner", "reason": options.reason or "reason", "until": until}
    read({EXCEPTIONS: [entry]}, "the flags", judges=False)
    if until < datetime.now(UTC).date().isoformat():
        raise UsageError(f"--until {until} is past: an exception that has expired covers nothing, give a day to come")


def _finding(opened: RunReader, fingerprint: str) -> FindingLine:
    """Return the first finding of the run with this fingerprint. Raises UsageError if there is none."""
    for line in opened.findings():
        if line.fingerprint == fingerprint:
            return line
    raise UsageError(
        f"{opened.uri} has no finding with the fingerprint {visible(fingerprint[:100])}: its findings/ have them"
    )


def _group(opened: RunReader, name: str) -> tuple[RollUps, Group]:
    """Return the roll-ups of the run, and their group with this ID. Raises UsageError if there is none."""
    rollups = opened.rollups()
    found = next((group for group in rollups.groups if group.id == name), None)
    if found is None:
        raise UsageError(f"{opened.uri} has no group {name}: its rollups.json and its page have them")
    return rollups, found
