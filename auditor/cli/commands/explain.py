"""The command `auditor explain`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from auditor.cli import signals
from auditor.cli.command_frame import CommandFrame, command
from auditor.cli.flags import RUN, Flags
from auditor.cli.output import first_word, print_text, say
from auditor.cli.progress import columns
from auditor.config.settings import Settings
from auditor.errors import UsageError
from auditor.model.access import Verdict
from auditor.offline.explain import ObjectName, explain_from_run, live_bucket, name_of, run_place
from auditor.offline.explanation import Explanation, render


def declare_explain(flags: Flags) -> None:
    """Declare the flags of `auditor explain`.

    auditor explain s3://my-bucket/report.pdf
    auditor explain s3://my-bucket/report.pdf --run s3://my-bucket
    auditor explain s3://my-bucket/report.pdf --version-id 3sL4kqtJlcpXroDTDmJ --format json
    """
    flags.show_daily("run version-id out format profile config")
    flags.add("objects s3://BUCKET/KEY", "whole keys", nargs="+")
    flags.add("--run RUN", f"read the answer from a run, without a request: {RUN}; or a run's ID", dest="run_folder")
    flags.add("--version-id ID", "this version, not the current one")
    flags.settings(out="place of the run with this ID (./auditor-runs)")
    flags.settings("engine", "key_policies")
    flags.connection()
    flags.form()


@command()
def run_explain(frame: CommandFrame) -> int:
    """Explain each object, print the explanations, and return the exit code: 4 if a verdict is unknown, and 2 if an
    object is not there.
    """
    options = frame.options
    names = list(dict.fromkeys(name_of(uri, options.version_id) for uri in options.objects))
    found: list[Explanation] = []
    missing: list[str] = []
    if options.run_folder is None:
        first_word(f"asking about {names[0].text}")
        signals.run(_live(names, frame.settings, found, missing))
    else:
        with frame.reading(run_place(options.run_folder, names[0].bucket, frame.settings)) as opened:
            for name in names:
                with _noted(missing):
                    found += explain_from_run(opened, name)
    documents = (json.dumps(one.to_dict()) + "\n" for one in found)
    print_text("".join(documents) if options.format == "json" else render(found, columns()))
    for sentence in missing:
        say(sentence)
    if missing:
        return UsageError.exit_code
    return 4 if any(one.access.verdict is Verdict.UNKNOWN for one in found) else 0


async def _live(names: Sequence[ObjectName], settings: Settings, found: list[Explanation], missing: list[str]) -> None:
    """Add the explanations of the objects that exist to `found`, and a sentence for each of the others to `missing`."""
    for bucket in dict.fromkeys(name.bucket for name in names):
        async with live_bucket(bucket, settings) as opened:
            for name in names:
                if name.bucket == bucket:
                    with _noted(missing):
                        found.append(await opened.explain(name))


@contextmanager
def _noted(missing: list[str]) -> Iterator[None]:
    """Add the sentence of a UsageError in the `with` block to `missing`."""
    try:
        yield
    except UsageError as error:
        missing.append(str(error))
