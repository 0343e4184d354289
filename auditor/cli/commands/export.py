"""The command `auditor export`."""

from __future__ import annotations

import argparse
import os
import secrets
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from auditor.cli.options import settings_of
from auditor.cli.output import first_word, heard
from auditor.cli.terminal import options_of
from auditor.config.values import account_number
from auditor.errors import UsageError
from auditor.reports.formats import FORMATS
from auditor.reports.formats.base import FormatOptions
from auditor.runs.reading import RunReader, open_run
from auditor.runs.stores.local import output_errors
from auditor.text import visible


def run(options: argparse.Namespace) -> int:
    """Write the run in the chosen format, to stdout or to a file, and return 0."""
    settings = settings_of(options)
    account = None if options.account is None else account_number(options.account, "--account")
    if account and options.format != "asff":
        raise UsageError(f"--account is for --format asff, not {options.format}: leave it out")
    connection = {"endpoint_url": settings.endpoint_url, "profile": settings.profile, "region": settings.region}
    first_word(f"reading the run {visible(options.run_folder)}")
    with open_run(options.run_folder, **connection) as opened:
        if opened.summary is None:
            raise UsageError(f"run {opened.run_id} has no summary.json yet: end it with `auditor audit --resume`")
        heard()
        how = options_of(settings) if options.file is None else FormatOptions(fail_on=settings.fail_on)
        if options.format == "asff":
            how = replace(
                how, account=account or _fact(opened, "account"), region=settings.region or _fact(opened, "region")
            )
        _write(FORMATS[options.format](opened.summary, opened, how), options.file)
    return 0


def _fact(run: RunReader, name: str) -> str | None:
    """Return a fact of the bucket as the run read it last; None if the run does not know it."""
    value = getattr(run.bucket.read[-1].facts, name) if run.bucket else None
    return value if isinstance(value, str) else None


def _write(pieces: Iterable[str], file: str | None) -> None:
    if file is not None:
        write_whole(Path(file), pieces)
        return
    sys.stdout.reconfigure(encoding="utf-8", newline="")  # type: ignore[union-attr]
    sys.stdout.writelines(pieces)
    sys.stdout.flush()


def write_whole(place: Path, pieces: Iterable[str]) -> None:
    """Write the file so that it exists only when it is whole. Only its owner may read it (mode 600)."""
    growing = place.with_name(f".{place.name}.{secrets.token_hex(4)}.tmp")
    with output_errors(place):
        try:
            descriptor = os.open(growing, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
                file.writelines(pieces)
            os.replace(growing, place)
        finally:
            with suppress(OSError):
                growing.unlink(missing_ok=True)
