"""The command `auditor export`."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from auditor.aio import loop as loops
from auditor.audit.security_hub import SentFindings, open_security_hub
from auditor.cli.command_frame import CommandFrame, command
from auditor.cli.flags import Flags
from auditor.cli.output import expect, heard, say
from auditor.cli.terminal import options_of
from auditor.config.settings import Settings
from auditor.config.values import account as account_of
from auditor.errors import UsageError
from auditor.model.summary import Summary
from auditor.reports.formats import FORMATS
from auditor.reports.formats.asff import LookedAt
from auditor.reports.formats.base import FormatOptions
from auditor.runs.reading import RunReader
from auditor.runs.stores.outfile import OutFile
from auditor.text import counted, visible

_HUB: Final = "AWS Security Hub, for asff"
_REGION: Final = re.compile(r"[a-z0-9-]{1,64}")


def declare_export(flags: Flags) -> None:
    """Declare the flags of `auditor export`.

    auditor export s3://my-bucket --format csv --out findings.csv
    auditor export s3://my-bucket --format markdown
    auditor export s3://my-bucket --format ocsf --out findings.json
    """
    flags.run_folder()
    words = "; ".join(f"{name}: {one.words}" for name, one in FORMATS.items())
    flags.add("--format", words, required=True, choices=tuple(FORMATS))
    flags.add("--out FILE", "write there, not to stdout", dest="file")
    flags.add("--account NUMBER", "the account that the findings are of (the run's)", _HUB)
    send = "import the findings into the Security Hub of the credentials' account, and archive those of the last run"
    flags.add("--send", f"{send} that are over", _HUB)
    flags.settings("endpoint_url", "profile")
    flags.settings(region="region of the findings (the bucket's), and of the bucket that has the run folder")
    flags.config()


@command()
def run_export(frame: CommandFrame) -> int:
    """Write the run in the chosen format, or send it. Return 0, or 1 if a finding is refused."""
    options, settings = frame.options, frame.settings
    account = None if options.account is None else account_of(options.account, "--account")
    if options.format != "asff" and (account or options.send):
        raise UsageError(f"--account and --send are for --format asff, not {options.format}: leave them out")
    if settings.region is not None and not _REGION.fullmatch(settings.region):
        raise UsageError(f"--region {settings.region!r} is no region: write it like eu-west-1")
    with frame.reading(options.run_folder) as opened:
        if opened.summary is None:
            raise UsageError(f"run {opened.run_id} has no summary.json yet: end it with `auditor audit --resume`")
        heard()
        if options.file is not None or not options.send:
            how = _choices(opened, frame, account)
            _write(FORMATS[options.format](opened.summary, opened, how), options.file)
        if options.send:
            return _send(opened, opened.summary, settings, account)
    return 0


def _choices(run: RunReader, frame: CommandFrame, account: str | None) -> FormatOptions:
    options, settings = frame.options, frame.settings
    how = options_of(settings, run.uri, options.verbose)
    if options.file is not None:
        how = FormatOptions(fail_on=how.fail_on, verbose=how.verbose, folder=how.folder)
    if options.format != "asff":
        return how
    return replace(how, account=account or _fact(run, "account"), region=settings.region or _fact(run, "region"))


def _send(run: RunReader, summary: Summary, settings: Settings, account: str | None) -> int:
    """Send the findings to Security Hub, print how many it took, and return the exit code."""
    rollups = run.rollups()
    looked = LookedAt.by(summary, rollups, run.begun_with)

    async def send() -> SentFindings:
        async with open_security_hub(settings.region, settings.profile, account) as hub:
            return await hub.send(summary, rollups, looked)

    expect("asking Security Hub")
    done = loops.run(send())
    place = f"Security Hub of account {done.hub.account} in {done.hub.region}"
    sys.stdout.write(f"{place}: {counted(done.sent, 'finding')} sent, {done.archived:,} archived, {done.kept:,} kept\n")
    if done.kept:
        say(f"{counted(done.kept, 'earlier finding')} stay active: this run did not look at all of their objects")
    for name, code in done.failed:
        say(f"{place} refuses {visible(name)}: {visible(code)}")
    return 1 if done.failed else 0


def _fact(run: RunReader, name: str) -> str | None:
    """Return a fact of the bucket as the run read it last; None if the run does not know it."""
    value = getattr(run.begun_with.facts, name)
    return value if isinstance(value, str) else None


def _write(pieces: Iterable[str], file: str | None) -> None:
    """Write the pieces to stdout, or to a file that exists only when it is whole."""
    if file is None:
        sys.stdout.reconfigure(encoding="utf-8", newline="")  # type: ignore[union-attr]
        sys.stdout.writelines(pieces)
        sys.stdout.flush()
        return
    with OutFile(file) as growing:
        for piece in pieces:
            growing.write(piece.encode())
        growing.keep()
