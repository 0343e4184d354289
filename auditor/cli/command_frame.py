"""The frame of a command: it reads the settings and targets from the flags, opens run folders, and prints results."""

from __future__ import annotations

import argparse
import asyncio
import os
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, suppress
from functools import wraps
from typing import Final, TypeVar

from auditor.cli.flags import flag_of
from auditor.cli.output import first_word, print_json, print_text
from auditor.cli.process_end import GivenUp
from auditor.cli.progress import Count, shown
from auditor.config.file import load_settings
from auditor.config.layers import Layer, variable
from auditor.config.resources import check_ledger
from auditor.config.settings import SETTINGS, Settings
from auditor.errors import UsageError
from auditor.ledger import ledger_file
from auditor.model.target import Target, parse_target
from auditor.offline.folder_place import latest_place, open_run
from auditor.runs.reading import RunReader
from auditor.runs.stores import open_store
from auditor.runs.stores.base import Store
from auditor.text import visible

T = TypeVar("T")
_FORMS: Final = {"ledger": "sqlite:PATH or dynamodb:TABLE", "queue": "the URL of an SQS queue"}


class CommandFrame:
    """One command that runs. options: its flags and arguments as given. settings: from flags, then AUDITOR_ variables,
    then auditor.toml, then defaults. targets: those of the command line in their order, without duplicates.
    """

    def __init__(self, options: argparse.Namespace, *needed: str) -> None:
        """needed: names of settings that must have a value. Raises UsageError for wrong settings and targets."""
        self.options = options
        given = vars(options)
        flags = Layer({name: given.get(name) for name in SETTINGS}, flag_of)
        self.settings = load_settings(flags, path=given.get("config"))
        self.targets: list[Target] = []
        if "start_after" in options:
            bounds = {"start_after": options.start_after, "stop_at": options.stop_at}
            targets = (parse_target(uri, versions=self.settings.versions, **bounds) for uri in options.targets)
            self.targets = list(dict.fromkeys(targets))
        for name in needed:
            if getattr(self.settings, name) is None:
                ways = f"give {_FORMS[name]} with it, set {variable(name)}, or write {name} in auditor.toml"
                raise UsageError(f"{SETTINGS[name].option} is missing: {ways}")

    def reading(self, place: str) -> AbstractContextManager[RunReader]:
        """Tell the user that the run is read, and open it. place: path or URI of its folder, or a target, whose latest
        complete run below `out` it is. Raises UsageError for another place, and if no run is there.
        """
        first_word(f"reading the run {visible(place)}")
        return open_run(self.run_place(place), **self.settings.connection)

    def run_place(self, place: str) -> str:
        """Return the place of a run folder: `place`, or that of the latest run if it is a target."""
        return latest_place(place, self.settings.out, **self.settings.connection)

    def store(self, place: str) -> Store:
        """Open a place of run folders."""
        return open_store(place, **self.settings.connection)

    def print(self, document: object, text: Callable[[], str]) -> None:
        """Print a result in the form that --format names. document: for "json". text: makes the lines of the others."""
        if self.options.format == "json":
            print_json(document)
        else:
            print_text(text())

    def print_lines(self, document: object, lines: Iterable[str]) -> None:
        """Print a result as print() does. lines: without their ends; they are taken if they are printed."""
        self.print(document, lambda: "".join(f"{line}\n" for line in lines))

    def ask_ledger(self, doing: str = "asking") -> None:
        """Tell the user that the ledger is asked. Raises UsageError if it is a SQLite file that does not exist."""
        check_ledger(self.settings)
        first_word(f"{doing} the ledger {visible(self.settings.ledger or '')}")


def command(
    *needed: str, given_up: str | None = None
) -> Callable[[Callable[[CommandFrame], int]], Callable[[argparse.Namespace], int]]:
    """Return a decorator that makes a command of a function, which gets its frame. needed: as for CommandFrame.
    given_up: the sentence if a second signal cancels the work, in place of the usual one.
    """

    def framed(run: Callable[[CommandFrame], int]) -> Callable[[argparse.Namespace], int]:
        @wraps(run)
        def with_frame(options: argparse.Namespace) -> int:
            try:
                return run(CommandFrame(options, *needed))
            except GivenUp as error:
                raise GivenUp(given_up or str(error)) from error

        return with_frame

    return framed


def whole_key(uri: str) -> Target:
    """Return the target whose prefix is the whole key that a URI names. Raises UsageError if it names a bucket."""
    target = parse_target(uri)
    if not target.prefix:
        raise UsageError(f"{target.uri} names no key: write s3://BUCKET/KEY, the whole key")
    return target


async def in_thread(count: Count, work: Callable[[], T], *, ends: bool = False) -> T:
    """Do the work in a thread, show its progress on stderr, and return its result. The parameters are those of
    progress.shown().
    """
    async with shown(count, ends=ends):
        return await asyncio.to_thread(work)


def refuse_ledger(place: str | None, settings: Settings, flag: str) -> None:
    """Raise UsageError if a flag's output file, `place`, would overwrite the SQLite file of the ledger."""
    file = ledger_file(settings.ledger or "")
    if place is None or file is None:
        return
    with suppress(OSError):  # the file is missing or not accessible: opening it says so
        if os.path.samefile(place, file):
            raise UsageError(f"{flag} {place[:200]} is the ledger itself: give another file")
