"""What commands share: settings from flags, variables and auditor.toml; signals; output on stdout."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, Final

from auditor.aio.stop import Stop
from auditor.config.file import load_settings
from auditor.config.settings import SETTINGS, Layer, Settings, variable
from auditor.errors import UsageError
from auditor.ledger import ledger_file
from auditor.model.target import Target, parse_target


def settings_of(options: argparse.Namespace) -> Settings:
    """Flags, then AUDITOR_ variables, then auditor.toml, then defaults. Raises UsageError."""
    given = vars(options)
    flags = Layer({name: given.get(name) for name in SETTINGS}, lambda name: SETTINGS[name].option)
    return load_settings(flags, path=given.get("config"))


def targets_of(options: argparse.Namespace, settings: Settings) -> list[Target]:
    """The command line's targets, each once, in order."""
    targets = [
        parse_target(uri, versions=settings.versions, start_after=options.start_after, stop_at=options.stop_at)
        for uri in options.targets
    ]
    return list(dict.fromkeys(targets))


_FORMS: Final = {"ledger": "sqlite:PATH or dynamodb:TABLE", "queue": "the URL of an SQS queue"}


def check_needed(settings: Settings, *names: str) -> None:
    """Raises UsageError for the first of these settings that nothing names."""
    for name in names:
        if getattr(settings, name) is None:
            ways = f"give {_FORMS[name]} with it, set {variable(name)}, or write {name} in auditor.toml"
            raise UsageError(f"{SETTINGS[name].option} is missing: {ways}")


def check_ledger(settings: Settings) -> None:
    """Raises UsageError for a ledger whose file is not there: what only reads it would find nothing wrong in an empty
    one.
    """
    file = ledger_file(settings.ledger or "")
    if file is not None and not os.path.exists(file):
        raise UsageError(
            f"--ledger {settings.ledger!r} is not there: name the one that `auditor hash`, an audit or `auditor digests"
            " import` wrote"
        )


def refuse_ledger(place: str | None, settings: Settings, flag: str) -> None:
    """Raises UsageError when what is to be written there would take the place of the ledger's file."""
    file = ledger_file(settings.ledger or "")
    if place is None or file is None:
        return
    with suppress(OSError):  # no such file, or none that can be looked at: then opening it tells
        if os.path.samefile(place, file):
            raise UsageError(f"{flag} {place[:200]} is the ledger itself: give another file")


def worst(codes: Iterable[int]) -> int:
    """The exit code of several targets: a failure, then a hole, then findings."""
    found = set(codes)
    return next(code for code in (1, 4, 3, 0) if code in found)


def stop_on_signals(stop: Stop) -> None:
    """The first Ctrl-C or SIGTERM stops listing and finishes what is in flight; the second gives that up too."""
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()

    def caught(name: str) -> None:
        if stop:
            if task is not None:
                task.cancel()
            return
        stop.set(f"stopped by {name}")
        sys.stderr.write(f"auditor: {name}: finishing what is in flight; once more to give that up\n")

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, caught, number.name)


def print_json(value: Mapping[str, Any]) -> None:
    """One document a line, so that several can be told apart."""
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()
