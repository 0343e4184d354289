"""The command `auditor verify`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from io import TextIOWrapper
from typing import TextIO

from auditor.aio.stop import Stop
from auditor.cli import signals
from auditor.cli.each_target import each_target
from auditor.cli.options import refuse_ledger, settings_of, targets_of
from auditor.cli.progress import Show
from auditor.cli.telling import Teller
from auditor.config.resources import Resources, check_ledger, open_resources
from auditor.config.settings import Settings
from auditor.config.values import algorithms
from auditor.errors import OutputError, UsageError
from auditor.model.target import Target
from auditor.runs.stores.local import private
from auditor.verify.alert import verify_alert, verify_event
from auditor.verify.run import Verification
from auditor.verify.summary import WorstObjects, exit_code, printed


def run(options: argparse.Namespace) -> int:
    settings = settings_of(options, "ledger")
    compared = None if options.compared is None else algorithms(options.compared, "--algorithm")
    targets = targets_of(options, settings)
    if options.combined == "-" and options.format == "json":
        raise UsageError("--combined - and --format json would both go to stdout: give --combined a file")
    refuse_ledger(options.combined, settings, "--combined")
    if not settings.record:
        check_ledger(settings)
    with _opened(options.combined) as combined:
        teller = Teller(settings, "verification")
        one = partial(_verify_one, settings, compared, combined, options.format, teller)
        opening = open_resources(settings, targets, hashing=False)
        kept = "the ledger, if it can be written, has noted what was verified"

        def failed(target: Target, sentence: str, code: int) -> None:
            teller.failed(sentence)

        work = each_target(targets, opening, one, verb="verified", kept=kept, failed=failed)
        return signals.run(teller.around(work))


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
    """The file of the combined report. It raises OutputError where a file raises OSError, so that its failure is not
    taken for one of stdout.
    """

    def __init__(self, place: str) -> None:
        self._place = place
        with self._errors():
            file = open(place, "wb", opener=private)  # noqa: SIM115 - closed with this one
            super().__init__(file, encoding="utf-8", newline="\n")

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


async def _verify_one(
    settings: Settings,
    compared: tuple[str, ...] | None,
    combined: TextIO | None,
    output: str,
    teller: Teller,
    target: Target,
    resources: Resources,
    stop: Stop,
    show: Show,
) -> int:
    """Verify one target, print the result, and return the exit code. The result goes to stderr if stdout has the
    combined report.

    compared: the algorithms to compare; None for all that the ledger has. combined: the stream of the combined report;
    None for no such report.
    """
    named = WorstObjects(combined, settings.fail_on_outcomes)
    verification = Verification(target, settings, resources, stop, compared=compared, combined=named)
    async with show(verification.snapshot):
        summary = await verification.run()
    stream = sys.stderr if combined is sys.stdout else sys.stdout
    stream.write(printed(summary, output))
    if output == "table" and combined is not sys.stdout:
        stream.writelines(named.table(summary))
    stream.flush()
    fail_on = settings.fail_on_outcomes
    await teller.tell(verify_alert(summary, fail_on), verify_event(summary, fail_on))
    return exit_code(summary, fail_on)
