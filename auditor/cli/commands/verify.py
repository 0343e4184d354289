"""The command `auditor verify`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from io import TextIOWrapper
from typing import TextIO

from auditor.aio.stop import Stop
from auditor.cli import signals
from auditor.cli.command_frame import CommandFrame, command, refuse_ledger
from auditor.cli.flags import DIGESTS, RESULTS, Flags
from auditor.cli.progress import Show
from auditor.cli.run_targets import Teller, each_target
from auditor.config.resources import Resources, check_ledger, open_resources
from auditor.config.settings import CHANNELS
from auditor.config.values import algorithms
from auditor.errors import OutputError, UsageError
from auditor.model.target import Target
from auditor.runs.stores.local import private
from auditor.verify.alert import verify_alert, verify_event
from auditor.verify.run import Verification
from auditor.verify.summary import WorstObjects, exit_code, printed


def declare_verify(flags: Flags) -> None:
    """Declare the flags of `auditor verify`.

    auditor verify s3://my-bucket --ledger sqlite:digests.db
    auditor verify s3://my-bucket --ledger dynamodb:digests --max-age 90d --record
    auditor verify s3://my-bucket/masters/ --ledger sqlite:digests.db --percent 5 --combined lines.jsonl
    """
    flags.show_daily("versions ledger algorithm max-age percent record fail-on out format profile config")
    flags.targets()
    flags.settings("allow_empty", ledger="ledger to compare with: sqlite:PATH or dynamodb:TABLE")
    compared = "compare only these digests, where the ledger has one of them (by default all)"
    flags.add("--algorithm NAME,..", compared, DIGESTS, dest="compared")
    with flags.either():
        flags.settings("max_age", "percent")
    cost = "also read objects of storage classes that charge for reading (IA, Glacier IR ..)"
    flags.settings("every", "grace", "fail_on_outcomes", "record", accept_cost=cost)
    flags.add("--combined FILE", "write a line for each object to this file, or - for stdout", RESULTS)
    flags.settings(out="where reports go: a directory or s3://BUCKET/PREFIX")
    flags.pace()
    flags.settings(*CHANNELS)
    flags.connection()
    flags.form()


@command("ledger")
def run_verify(frame: CommandFrame) -> int:
    """Verify each target, print the results, and return the exit code."""
    options, settings = frame.options, frame.settings
    compared = None if options.compared is None else algorithms(options.compared, "--algorithm")
    if options.combined == "-" and options.format == "json":
        raise UsageError("--combined - and --format json would both go to stdout: give --combined a file")
    refuse_ledger(options.combined, settings, "--combined")
    if not settings.record:
        check_ledger(settings)
    teller, fail_on = Teller(settings, "verification"), settings.fail_on_outcomes

    async def one(target: Target, resources: Resources, stop: Stop, show: Show) -> int:
        """Verify one target, and print the result: on stderr if stdout has the combined report."""
        named = WorstObjects(combined, fail_on)
        verification = Verification(target, settings, resources, stop, compared=compared, combined=named)
        async with show(verification.snapshot):
            summary = await verification.run()
        stream = sys.stderr if combined is sys.stdout else sys.stdout
        stream.write(printed(summary, options.format))
        if options.format == "table" and stream is sys.stdout:
            stream.writelines(named.table(summary))
        stream.flush()
        await teller.tell(verify_alert(summary, fail_on), verify_event(summary, fail_on))
        return exit_code(summary, fail_on)

    def failed(target: Target, sentence: str, code: int) -> None:
        teller.failed(sentence)

    with _opened(options.combined) as combined:
        kept = "the ledger, if it can be written, has the results so far"
        opening = open_resources(settings, frame.targets, hashing=False)
        each = each_target(frame.targets, opening, one, verb="verified", kept=kept, failed=failed)
        return signals.run(teller.around(each))


def _opened(place: str | None) -> AbstractContextManager[TextIO | None]:
    """Open the stream of the combined report; None for no such report."""
    if place is None or place == "-":
        return nullcontext(sys.stdout if place else None)
    return _Lines(place)


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
