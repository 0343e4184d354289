"""The command `auditor probe`."""

from __future__ import annotations

from functools import partial
from typing import Final

from auditor.cli import signals
from auditor.cli.command_frame import CommandFrame, command
from auditor.cli.flags import OBJECTS, Flags, whole_number
from auditor.cli.output import expect, say
from auditor.cli.progress import counting, shown
from auditor.errors import RunStopped
from auditor.offline.folder_place import open_run
from auditor.offline.probe.probe_result import ProbeResult
from auditor.offline.probe.probe_run import ProbeOrder, ProbeRequest, probe
from auditor.offline.probe.sample import MOST, SAMPLE
from auditor.text import visible

_STRANGERS: Final = "the strangers"


def declare_probe(flags: Flags) -> None:
    """Declare the flags of `auditor probe`.

    auditor probe s3://my-bucket
    auditor probe s3://my-bucket --vantage 198.51.100.7 --as other-account
    auditor probe s3://my-bucket --sample 50 --most 2000 --format json
    """
    flags.run_folder()
    sample = f"this many objects of each group of the roll-ups ({SAMPLE})"
    flags.add("--sample N", sample, OBJECTS, type=whole_number, default=SAMPLE)
    flags.add("--most N", f"this many objects in all ({MOST})", OBJECTS, type=whole_number, default=MOST)
    flags.add("--as PROFILE", "also ask with requests signed by this foreign account", _STRANGERS, dest="foreign")
    flags.add("--vantage ADDRESS", "the public address of this machine", _STRANGERS)
    flags.connection()
    flags.form()


@command()
def run_probe(frame: CommandFrame) -> int:
    """Ask S3 as a stranger, print the result, and return its exit code."""
    options = frame.options
    order = ProbeOrder(options.sample, options.most, options.foreign, options.vantage)

    async def ask() -> ProbeResult:
        stop = signals.stop_on_signals()
        place = frame.run_place(options.run_folder)
        expect(f"reading the run {visible(place)}")
        with open_run(place, **frame.settings.connection) as opened:
            done: list[int] = []
            request = ProbeRequest(order, say, partial(done.append, 1), stop.is_set)
            async with stop.flight(), shown(counting(f"the probe of {opened.run_id}", lambda: len(done))):
                return await probe(opened, frame.settings, request)
        raise RunStopped("the probe did not finish: start it again")

    found = signals.run(ask())
    frame.print(found.to_dict(), found.text)
    return found.exit_code
