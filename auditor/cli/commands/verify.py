"""`auditor verify`."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from typing import Any, TextIO

from auditor.aio import loop as loops
from auditor.aio.stop import Stop
from auditor.cli.options import (
    check_ledger,
    check_needed,
    refuse_ledger,
    settings_of,
    stop_on_signals,
    targets_of,
    worst,
)
from auditor.cli.progress import Progress, make_progress
from auditor.config.resources import VerifyResources, open_verify_resources
from auditor.config.settings import Settings
from auditor.config.values import algorithms
from auditor.errors import OutputError, RunError, UsageError
from auditor.model.target import Target
from auditor.text import harmless, visible
from auditor.verify.run import Verification
from auditor.verify.summary import WorstObjects, exit_code, printed


def run(options: argparse.Namespace) -> int:
    settings = settings_of(options)
    check_needed(settings, "ledger")
    compared = None if options.compared is None else algorithms(options.compared, "--algorithm")
    targets = targets_of(options, settings)
    if options.combined == "-" and options.format == "json":
        raise UsageError("--combined - and --format json would both go to stdout: give --combined a file")
    refuse_ledger(options.combined, settings, "--combined")
    if not settings.record:
        check_ledger(settings)
    with _opened(options.combined) as combined:
        return loops.run(_Verifying(settings, compared, combined, options.format).all(targets))


@contextmanager
def _opened(place: str | None) -> Iterator[TextIO | None]:
    if place is None:
        yield None
    elif place == "-":
        yield sys.stdout
    else:
        with _Lines(place) as file:
            yield file


class _Lines(TextIOWrapper):
    """A file for the combined report. Raises OutputError, which errors of stdout are not to be taken for."""

    def __init__(self, place: str) -> None:
        self._place = place
        with self._errors():
            super().__init__(open(place, "wb"), encoding="utf-8", newline="\n")  # noqa: SIM115 - closed with this one

    def write(self, text: str, /) -> int:
        with self._errors():
            return super().write(text)

    def close(self) -> None:
        with self._errors():
            super().close()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            reason = error.strerror or error
            raise OutputError(f"--combined {self._place!r} cannot be written ({reason}): give another file") from error


class _Verifying:
    """Several targets, one after the other; one that fails does not keep the others from theirs."""

    def __init__(
        self, settings: Settings, compared: tuple[str, ...] | None, combined: TextIO | None, output: str
    ) -> None:
        self._settings = settings
        self._compared = compared
        self._combined = combined
        self._output = output
        self._stop = Stop()

    async def all(self, targets: list[Target]) -> int:
        stop_on_signals(self._stop)
        progress = make_progress()
        try:
            async with open_verify_resources(self._settings, targets) as around:
                return worst([await self._one(target, around, progress) for target in targets])
        finally:
            progress.close()

    async def _one(self, target: Target, around: VerifyResources, progress: Progress) -> int:
        if self._stop:
            sys.stderr.write(f"auditor: {visible(target.uri)} was not verified: {self._stop.reason}\n")
            return 4
        named = WorstObjects(self._combined)
        try:
            summary = await Verification(
                target,
                self._settings,
                around,
                self._stop,
                compared=self._compared,
                combined=named,
                watch=progress.update,
            ).run()
        except RunError as error:
            sys.stderr.write(f"auditor: {harmless(str(error))}\n")
            return error.exit_code
        except asyncio.CancelledError:
            sys.stderr.write(f"auditor: {visible(target.uri)}: given up; the ledger has noted what was verified\n")
            return 4
        self._print(summary, named)
        return exit_code(summary)

    def _print(self, summary: dict[str, Any], named: WorstObjects) -> None:
        stream = sys.stderr if self._combined is sys.stdout else sys.stdout
        stream.write(printed(summary, self._output))
        if self._output == "table" and self._combined is not sys.stdout:
            stream.writelines(named.table(summary))
        stream.flush()
