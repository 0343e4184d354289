"""The command `auditor accept`."""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime, timedelta
from typing import Final

from auditor.cli.options import settings_of
from auditor.cli.output import first_word, say
from auditor.config.exceptions import read_exceptions
from auditor.errors import UsageError
from auditor.model.run_lines import FindingLine
from auditor.reports.accept import entry_for
from auditor.runs.reading import RunReader, open_run
from auditor.text import visible

DAYS: Final = 90
"""Number of days for which the printed entry holds if --until is not given."""


def run(options: argparse.Namespace) -> int:
    """Print an entry of [[exceptions]] that covers the finding."""
    settings = settings_of(options)
    until = options.until or (datetime.now(UTC).date() + timedelta(DAYS)).isoformat()
    _check(options, until)
    first_word(f"reading the run {visible(options.run_folder)}")
    connection = {"endpoint_url": settings.endpoint_url, "profile": settings.profile, "region": settings.region}
    with open_run(options.run_folder, **connection) as opened:
        line = _finding(opened, options.fingerprint.lower())
        bucket = opened.bucket_name
    sys.stdout.write(entry_for(line, bucket, owner=options.owner, reason=options.reason, until=until))
    sys.stdout.flush()
    blank = [name for name in ("owner", "reason") if not getattr(options, name)]
    fill = f"fill in {' and '.join(blank)}, then " if blank else ""
    say(f"{fill}append this to auditor.toml")
    return 0


def _check(options: argparse.Namespace, until: str) -> None:
    """Raise UsageError for an owner, a reason or a day that auditor.toml may not have."""
    entry = {"rule": "O02", "owner": options.owner or "owner", "reason": options.reason or "reason", "until": until}
    read_exceptions([entry], "the flags")


def _finding(opened: RunReader, fingerprint: str) -> FindingLine:
    """Return the first finding of the run with this fingerprint. Raises UsageError if there is none."""
    for line in opened.findings():
        if line.fingerprint == fingerprint:
            return line
    raise UsageError(
        f"{opened.uri} has no finding with the fingerprint {visible(fingerprint[:100])}: its findings/ have them"
    )
