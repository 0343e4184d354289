"""The command `auditor who`."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator

from auditor.cli.options import settings_of
from auditor.cli.output import print_text
from auditor.cli.reading import reading
from auditor.config.settings import Settings
from auditor.errors import UsageError
from auditor.model.access import Audience
from auditor.model.object import ALL_USERS, ANONYMOUS_OWNER, AUTHENTICATED_USERS, LOG_DELIVERY
from auditor.runs.reading import RunReader
from auditor.text import counted, visible

_KNOWN = {
    ALL_USERS: "everyone: the group AllUsers",
    AUTHENTICATED_USERS: "any AWS account: the group AuthenticatedUsers",
    LOG_DELIVERY: "S3's log delivery",
    ANONYMOUS_OWNER: "everyone: the canonical ID of the anonymous user",
}


def run(options: argparse.Namespace) -> int:
    """Print the name of an account or another party, and its access in a run."""
    settings = settings_of(options)
    lines = [f"{visible(options.id)}: {_name(options.id, settings)}"]
    if options.id in settings.trusted:
        lines.append("  trusted: its access does not count as shared")
    if options.run_folder is not None:
        with reading(options.run_folder, settings) as opened:
            lines += _in_run(opened, options.id)
    print_text("".join(f"{line}\n" for line in lines))
    return 0


def _name(party: str, settings: Settings) -> str:
    named = next((account for account in settings.accounts if account.id == party), None)
    if named is not None:
        return visible(named.text)
    return _KNOWN.get(party, "unknown: no entry of [[accounts]] in auditor.toml names it")


def _in_run(opened: RunReader, party: str) -> Iterator[str]:
    """Yield a line for each verdict and each rule of a run that names the party."""
    if opened.summary is None:
        raise UsageError(f"{opened.uri} has no summary, because the run has not ended: give one that has")
    found = False
    for verdict, audiences in opened.summary.audiences.items():
        number = sum(count for text, count in audiences.items() if _names(text, party))
        if number:
            found = True
            yield f"  {verdict}: {counted(number, 'object')}"
    rules = Counter(line.rule for line in opened.findings() if line.grantee == party)
    for rule, number in sorted(rules.items()):
        found = True
        yield f"  {visible(rule)}: {counted(number, 'finding')}"
    if not found:
        yield f"  run {opened.run_id} names it nowhere"


def _names(text: str, party: str) -> bool:
    try:
        audience = Audience.parse(text)
    except ValueError:  # the rest of many audiences
        return False
    return audience.name == party
