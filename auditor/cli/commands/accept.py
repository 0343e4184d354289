"""The commands `auditor accept` and `who`: accept a finding or a group of a run, and name a party of its audiences."""

from __future__ import annotations

import argparse
import re
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Final

from auditor.cli.command_frame import CommandFrame, command
from auditor.cli.flags import RUN, Flags
from auditor.cli.output import print_text, say
from auditor.config.entries import EXCEPTIONS
from auditor.config.file import read
from auditor.config.settings import Settings
from auditor.errors import UsageError
from auditor.model.access import known_audiences
from auditor.model.object import ALL_USERS, ANONYMOUS_OWNER, AUTHENTICATED_USERS, LOG_DELIVERY
from auditor.model.rollup import Group, RollUps
from auditor.model.run_lines import FindingLine
from auditor.offline.accept import entries_for_group, entry_for
from auditor.runs.reading import RunReader
from auditor.text import counted, visible

_GROUP: Final = re.compile("[0-9a-f]{12}")
DAYS: Final = 90
"""Number of days for which the printed entry holds if --until is not given."""
_KNOWN: Final = {
    ALL_USERS: "everyone: the group AllUsers",
    AUTHENTICATED_USERS: "any AWS account: the group AuthenticatedUsers",
    LOG_DELIVERY: "S3's log delivery",
    ANONYMOUS_OWNER: "everyone: the canonical ID of the anonymous user",
}
"""Names of parties by which reports call them."""


def declare_accept(flags: Flags) -> None:
    """Declare the flags of `auditor accept`.

    auditor accept 0123456789abcdef0123456789abcdef --run s3://my-bucket
    auditor accept 0123456789ab --run s3://my-bucket --owner Web --reason 'a site'
    """
    what = "a finding's fingerprint, 32 hex digits, or a group's ID in rollups.json and on the page, 12 hex digits"
    flags.add("accepted FINGERPRINT|GROUP", what)
    flags.add("--run RUN", f"the run that has the finding or group: {RUN}", dest="run_folder", required=True)
    flags.add("--owner TEXT", "the person or team responsible for it", default="")
    flags.add("--reason TEXT", "why it is accepted", default="")
    flags.add("--until DAY", "the last day on which it holds: YYYY-MM-DD (in 90 days)")
    flags.run_store()


@command()
def run_accept(frame: CommandFrame) -> int:
    """Print an entry of [[exceptions]] that covers the finding or the group."""
    options = frame.options
    until = options.until or (datetime.now(UTC).date() + timedelta(DAYS)).isoformat()
    _check(options, until)
    with frame.reading(options.run_folder) as opened:
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
        raise UsageError(f"--until {until} is past: an exception that has expired covers nothing; give a future date")


def _finding(opened: RunReader, fingerprint: str) -> FindingLine:
    """Return the first finding of the run with this fingerprint. Raises UsageError if there is none."""
    for line in opened.findings():
        if line.fingerprint == fingerprint:
            return line
    raise UsageError(
        f"{opened.uri} has no finding with the fingerprint {visible(fingerprint[:100])}: see its findings/ for them"
    )


def _group(opened: RunReader, name: str) -> tuple[RollUps, Group]:
    """Return the roll-ups of the run, and their group with this ID. Raises UsageError if there is none."""
    rollups = opened.rollups()
    found = next((group for group in rollups.groups if group.id == name), None)
    if found is None:
        raise UsageError(f"{opened.uri} has no group {name}: see its rollups.json or its page for them")
    return rollups, found


def declare_who(flags: Flags) -> None:
    """Declare the flags of `auditor who`.

    auditor who 123456789012
    auditor who 123456789012 --run s3://my-bucket
    """
    flags.add("id ID", "a canonical ID, account, ARN or network, written as a report writes it")
    flags.add("--run RUN", f"count its access in {RUN}", dest="run_folder")
    flags.run_store()


@command()
def run_who(frame: CommandFrame) -> int:
    """Print the name of an account or another party, and its access in a run."""
    options, settings = frame.options, frame.settings
    lines = [f"{visible(options.id)}: {_name(options.id, settings)}"]
    if options.id in settings.trusted:
        lines.append("  trusted: its access is not reported as shared")
    if options.run_folder is not None:
        with frame.reading(options.run_folder) as opened:
            lines += _in_run(opened, options.id)
    print_text("".join(f"{line}\n" for line in lines))
    return 0


def _name(party: str, settings: Settings) -> str:
    named = next((account for account in settings.accounts if account.id == party), None)
    if named is not None:
        return visible(named.text)
    return _KNOWN.get(party, "unknown: no entry of [[accounts]] in auditor.toml names it")


def _in_run(opened: RunReader, party: str) -> list[str]:
    """Return a line for each verdict and each rule of a run that names the party."""
    if opened.summary is None:
        raise UsageError(f"{opened.uri} has no summary, because the run has not ended: give one that has ended")
    lines = []
    for verdict, audiences in opened.summary.audiences.items():
        named = (count for text, count in audiences.items() for one in known_audiences((text,)) if one.name == party)
        if number := sum(named):
            lines.append(f"  {verdict}: {counted(number, 'object')}")
    rules = Counter(line.rule for line in opened.findings() if line.grantee == party)
    lines += [f"  {visible(rule)}: {counted(number, 'finding')}" for rule, number in sorted(rules.items())]
    return lines or [f"  run {opened.run_id} does not mention it"]
