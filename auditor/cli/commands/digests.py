"""The commands `auditor digests export`, `import` and `history`: checksum manifests, and the history of keys."""

from __future__ import annotations

import argparse
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, closing
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

from auditor.cli import signals
from auditor.cli.options import refuse_ledger, settings_of
from auditor.cli.output import first_word, print_result, say
from auditor.cli.process_end import GivenUp
from auditor.cli.progress import counting, shown
from auditor.cli.signals import stop_on_signals
from auditor.config.resources import check_ledger, ledger_of
from auditor.config.settings import Settings
from auditor.errors import UsageError
from auditor.ledger.manifests import FORMS
from auditor.ledger.manifests.base import Form, ManifestFile
from auditor.ledger.manifests.export import Exported, HistoryCounts, export, export_history
from auditor.ledger.manifests.load import Imported, Read, Spool, import_all, read_all
from auditor.model.dates import seconds_in_utc
from auditor.model.target import Target, parse_target
from auditor.runs.stores.outfile import OutFile
from auditor.text import counted, visible

T = TypeVar("T")
_Write = Callable[[bytes], object]
"""A function that writes bytes to the output."""
_GIVEN_UP: Final = {
    "export": "given up: there is no manifest",
    "import": "given up; import again for the rest",
    "history": "given up: the history is not whole",
}


def run(options: argparse.Namespace) -> int:
    actions = {"export": _export, "import": _import, "history": _history}
    try:
        return actions[options.action](options)
    except GivenUp:  # a second signal cancelled it
        say(_GIVEN_UP[options.action])
        return 4


def _export(options: argparse.Namespace) -> int:
    """Write the checksum manifest to stdout or a file, name the keys left out on stderr, and return the exit code."""
    settings = settings_of(options, "ledger")
    target = parse_target(options.target)
    form = FORMS[options.manifest]
    refuse_ledger(options.file, settings, "--out")
    algorithms = _exported_algorithms(form, settings, asked=options.algorithms is not None)

    async def exported(write: _Write) -> Exported:
        check_ledger(settings)
        watch = _Watch(target)
        async with watch.shown(), ledger_of(settings) as ledger:
            relative = options.relative
            return await export(ledger, target, form, algorithms, write, relative=relative, go_on=watch.go_on)

    counts = _written(options.file, exported, lambda counts: counts.whole or (counts.complete and not options.strict))
    for sentence in _left_out(counts, target, form, algorithms):
        say(sentence)
    if options.strict and counts.complete and not counts.whole:
        say("--strict: the manifest does not name each key with its present digest")
        return 4
    return 0 if counts.complete else 4


def _written(file: str | None, exported: Callable[[_Write], Coroutine[Any, Any, T]], kept: Callable[[T], bool]) -> T:
    """Run `exported` with a function that writes to stdout (file: None) or to a new file, and return the result of
    `exported`. The new file replaces `file` only if `kept` returns True for that result.
    """
    if file is None:
        result = signals.run(exported(sys.stdout.buffer.write))
        sys.stdout.buffer.flush()
        return result
    with OutFile(file) as growing:
        result = signals.run(exported(growing.write))
        if kept(result):
            growing.keep()
    return result


def _history(options: argparse.Namespace) -> int:
    """Write the history of all keys to stdout or a file, and return the exit code."""
    settings = settings_of(options, "ledger")
    target = parse_target(options.target)
    refuse_ledger(options.file, settings, "--out")

    async def exported(write: _Write) -> HistoryCounts:
        check_ledger(settings)
        watch = _Watch(target)
        async with watch.shown(), ledger_of(settings) as ledger:
            return await export_history(ledger, target, options.form, write, watch.go_on)

    counts = _written(options.file, exported, lambda counts: counts.complete)
    if not counts.complete:
        say("stopped: the history is not whole")
    elif not counts.lines:
        say(f"the ledger has no history of {visible(target.uri)}: check the bucket and the prefix")
    return 0 if counts.complete else 4


def _exported_algorithms(form: Form, settings: Settings, *, asked: bool) -> tuple[str, ...]:
    """Return the algorithms of the exported digests. asked: True if the user gave --algorithm.

    A CSV manifest holds all algorithms, or those that the user asked for. A manifest of any other form holds one:
    raises UsageError if the settings name several, or one that the form does not have.
    """
    if not form.single:
        return settings.algorithms if asked else form.algorithms
    if len(settings.algorithms) != 1 or settings.algorithms[0] not in form.algorithms:
        raise UsageError(
            f"a {form.name} manifest holds one of {', '.join(form.algorithms)}, not {','.join(settings.algorithms)}:"
            " name one with --algorithm, or choose --manifest csv"
        )
    return settings.algorithms


def _left_out(counts: Exported, target: Target, form: Form, algorithms: tuple[str, ...]) -> Iterator[str]:
    if counts.deleted:
        yield f"{counted(counts.deleted, 'key')} left out: deleted, as a notification said"
    if counts.retired:
        yield f"{counted(counts.retired, 'key')} left out: retired"
    if counts.stale:
        fate = "left out" if form.single else "stale"
        yield f"{counted(counts.stale, 'key')} {fate}: a notification told of newer content without a digest"
    if counts.without:
        wanted = "digest" if algorithms == form.algorithms else f"{' or '.join(algorithms)} digest"
        yield f"{counted(counts.without, 'key')} left out: without a {wanted}{' of the last version' * form.single}"
    if counts.unnameable:
        yield f"{counted(counts.unnameable, 'key')} left out: no {form.name} manifest can name them; --manifest csv can"
    if not counts.complete:
        yield "stopped: the manifest is not whole"
    elif not counts.keys:
        others = counts.deleted or counts.retired or counts.stale or counts.without or counts.unnameable
        fix = "" if others else ": check the bucket and the prefix"
        yield f"nothing of {visible(target.uri)} is in the manifest{fix}"


def _import(options: argparse.Namespace) -> int:
    settings = settings_of(options, "ledger")
    target = parse_target(options.target)
    wanted = settings.algorithms if options.algorithms is not None else ()
    with ExitStack() as stack:
        sources = [stack.enter_context(closing(ManifestFile(path))) for path in options.files]
        spool = stack.enter_context(Spool(sources))
        files = read_all(sources, spool, target.prefix, options.manifest, wanted)
        done = signals.run(_expect(settings, spool, target))
    for sentence in _remarks(files, target):
        say(sentence)
    _print(files, done, target, options.format)
    if not done.complete:
        say("stopped: the ledger has what is counted; import again for the rest")
    return 0 if done.complete else 4


async def _expect(settings: Settings, spool: Spool, target: Target) -> Imported:
    watch = _Watch(target)
    async with watch.shown(), ledger_of(settings) as ledger:
        return await import_all(spool, ledger, target, seconds_in_utc(datetime.now(UTC)), watch.go_on)


def _remarks(files: Sequence[Read], target: Target) -> Iterator[str]:
    for file in files:
        if not file.form:
            yield f"{file.file} left out: it names the bag's own files, not its payload"
        if file.other:
            yield f"{file.file}: {counted(file.other, 'digest')} of other algorithms left out"
    if target.prefix and not target.prefix.endswith("/"):
        example = visible(f"{target.prefix}name")
        yield f"names were joined to the prefix to the letter, as in {example}: end it with / where it is a folder"


def _print(files: Sequence[Read], done: Imported, target: Target, output: str) -> None:
    digests = sum(file.digests for file in files)
    words = (
        f"{visible(target.uri)}: {counted(digests, 'digest')} of {counted(len(files), 'file')},"
        f" {done.new:,} new to the ledger, {done.known:,} known before, complete: {'yes' if done.complete else 'NO'}\n"
    )
    names = ("file", "manifest", "digests", "other_algorithms")
    each = [dict(zip(names, (one.file, one.form or None, one.digests, one.other), strict=True)) for one in files]
    document = {
        "target": {"bucket": target.bucket, "prefix": target.prefix},
        "files": each,
        "digests": digests,
        "new": done.new,
        "known": done.known,
        "complete": done.complete,
    }
    print_result(output, document, lambda: words)


class _Watch:
    """Shows the progress of a command on digests, and stops the work at Ctrl-C or SIGTERM. The event loop has to run
    already when an instance is made.
    """

    def __init__(self, target: Target) -> None:
        self._stop = stop_on_signals()
        self._what = visible(target.uri)
        self._done = 0

    def go_on(self, done: int) -> bool:
        """Note for the progress how many keys, lines or digests are done. Return False once a signal has asked the work
        to stop.
        """
        self._done = done
        return not self._stop

    @asynccontextmanager
    async def shown(self) -> AsyncIterator[None]:
        first_word(f"asking the ledger about {self._what}")
        async with shown(counting(self._what, lambda: self._done)):
            yield
