"""Read the settings and targets from the flags that commands share, and refuse a missing or endangered ledger."""

from __future__ import annotations

import argparse
import os
from contextlib import suppress
from typing import Final

from auditor.config.file import load_settings
from auditor.config.layers import Layer, variable
from auditor.config.settings import SETTINGS, Settings
from auditor.errors import UsageError
from auditor.ledger import ledger_file
from auditor.model.target import Target, parse_target

_FORMS: Final = {"ledger": "sqlite:PATH or dynamodb:TABLE", "queue": "the URL of an SQS queue"}


def settings_of(options: argparse.Namespace, *needed: str) -> Settings:
    """Read the settings from flags, then AUDITOR_ variables, then auditor.toml, then defaults. Raises UsageError, also
    if one of the settings with the names `needed` has no value.
    """
    given = vars(options)
    flags = Layer({name: given.get(name) for name in SETTINGS}, lambda name: SETTINGS[name].option)
    settings = load_settings(flags, path=given.get("config"))
    for name in needed:
        if getattr(settings, name) is None:
            ways = f"give {_FORMS[name]} with it, set {variable(name)}, or write {name} in auditor.toml"
            raise UsageError(f"{SETTINGS[name].option} is missing: {ways}")
    return settings


def targets_of(options: argparse.Namespace, settings: Settings) -> list[Target]:
    """Return the targets of the command line in their order, without duplicates."""
    targets = [
        parse_target(uri, versions=settings.versions, start_after=options.start_after, stop_at=options.stop_at)
        for uri in options.targets
    ]
    return list(dict.fromkeys(targets))


def refuse_ledger(place: str | None, settings: Settings, flag: str) -> None:
    """Raise UsageError if a flag's output file, `place`, would overwrite the SQLite file of the ledger."""
    file = ledger_file(settings.ledger or "")
    if place is None or file is None:
        return
    with suppress(OSError):  # the file is missing or not accessible: opening it says so
        if os.path.samefile(place, file):
            raise UsageError(f"{flag} {place[:200]} is the ledger itself: give another file")
