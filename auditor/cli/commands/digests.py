"""The commands `auditor digests ..`: checksum manifests, the history of keys, reports of S3 Batch Operations, and a
person's decisions on keys.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, closing, nullcontext
from datetime import UTC, datetime
from functools import cache, partial
from typing import Final, TypeVar

from msgspec.structs import asdict, replace

from auditor.aio import loop as loops
from auditor.cli import signals
from auditor.cli.command_frame import CommandFrame, command, refuse_ledger, whole_key
from auditor.cli.flags import Flags
from auditor.cli.output import first_word, say
from auditor.cli.progress import counting, shown
from auditor.config.resources import caller_of, check_ledger, connection_to, ledger_of
from auditor.config.settings import Settings
from auditor.errors import RunError, UsageError
from auditor.hashing.batch.import_report import BATCH, ImportCounts, Importer
from auditor.hashing.batch.report import open_report
from auditor.ledger.base import Event, KeyHistory
from auditor.ledger.history import LONGEST
from auditor.ledger.manifests import FORMS
from auditor.ledger.manifests.base import Form, ManifestFile
from auditor.ledger.manifests.export import Exported, export, export_history
from auditor.ledger.manifests.load import Imported, Read, Spool, import_all, read_all
from auditor.model.dates import now_in_utc, seconds_in_utc
from auditor.model.target import Target, parse_target
from auditor.runs.stores.outfile import OutFile
from auditor.s3.bucket import open_in_its_region
from auditor.s3.calls import Caller, ConcurrencyLimit
from auditor.s3.engines.base import Engine
from auditor.s3.engines.pool import EnginePool
from auditor.s3.rate import RateLimit
from auditor.text import counted, visible
from auditor.verify.history import acknowledgements

T = TypeVar("T")
_TARGET: Final = "target s3://BUCKET[/PREFIX]"
Told = list[tuple[Target, list[Event]]]
"""For each key, the events that were written into the ledger's history. The key is a Target whose prefix is the whole
key."""


def declare_export(flags: Flags) -> None:
    """Declare the flags of `auditor digests export`.

    auditor digests export s3://my-bucket --ledger sqlite:d.db | sha256sum --check
    auditor digests export s3://my-bucket --ledger sqlite:d.db --manifest bagit
    """
    flags.add(_TARGET, "the keys to write")
    flags.add("--algorithm NAME", "algorithm of the digests (sha256)", dest="algorithms")
    form = "format: that of sha256sum, sha1sum and md5sum; BagIt's; or a table of all digests"
    flags.add("--manifest", form, choices=("sha256sum", "bagit", "csv"), default="sha256sum")
    flags.add("--relative", "name keys without the prefix")
    flags.add("--strict", "fail, and leave no FILE, if the digest of a key's current bytes is missing")
    flags.add("--out FILE", "write the manifest to this file, not to stdout", dest="file")
    flags.ledger_only()


@command("ledger", given_up="stopped at once: no manifest was written")
def run_export(frame: CommandFrame) -> int:
    """Write the checksum manifest to stdout or a file, name the keys left out on stderr, and return the exit code."""
    options, settings = frame.options, frame.settings
    target = parse_target(options.target)
    form = FORMS[options.manifest]
    refuse_ledger(options.file, settings, "--out")
    algorithms = _exported_algorithms(form, settings, asked=options.algorithms is not None)

    work = partial(export, target=target, form=form, algorithms=algorithms, relative=options.relative)
    counts = _written(frame, target, work, lambda counts: counts.whole if options.strict else counts.complete)
    for sentence in _left_out(counts, target, form, algorithms):
        say(sentence)
    if options.strict and counts.complete and not counts.whole:
        say("--strict: the manifest does not give the current digest of every key")
        return 4
    return 0 if counts.complete else 4


def _written(frame: CommandFrame, target: Target, work: Callable[..., Awaitable[T]], kept: Callable[[T], bool]) -> T:
    """Export to stdout, or to a new file that replaces --out only if `kept` returns True for the result, which is
    returned. work: takes the ledger, a function `write` that writes bytes to the output, and `go_on`.
    """
    with nullcontext() if frame.options.file is None else OutFile(frame.options.file) as growing:
        check_ledger(frame.settings)
        write = sys.stdout.buffer.write if growing is None else growing.write
        result = signals.run(_with_ledger(target, frame.settings, partial(work, write=write)))
        if growing is None:
            sys.stdout.buffer.flush()
        elif kept(result):
            growing.keep()
    return result


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
    fate = "left out" if form.single else "stale"
    wanted = "digest" if algorithms == form.algorithms else f"{' or '.join(algorithms)} digest"
    left = {
        "left out: deleted, as a notification said": counts.deleted,
        "left out: retired": counts.retired,
        f"{fate}: a notification reported newer content, which has no digest": counts.stale,
        f"left out: without a {wanted}{' of the last version' * form.single}": counts.without,
        f"left out: no {form.name} manifest can name them; --manifest csv can": counts.unnameable,
    }
    yield from (f"{counted(number, 'key')} {words}" for words, number in left.items() if number)
    if not counts.complete:
        yield "stopped: the manifest is incomplete"
    elif not counts.keys:
        fix = "" if any(left.values()) else ": check the bucket and the prefix"
        yield f"nothing of {visible(target.uri)} is in the manifest{fix}"


def declare_history(flags: Flags) -> None:
    """Declare the flags of `auditor digests history`.

    auditor digests history s3://my-bucket --ledger sqlite:digests.db --out history.csv
    """
    flags.add(_TARGET, "the keys to write")
    flags.add("--format", "format (csv)", dest="form", choices=("csv", "json-lines"), default="csv")
    flags.add("--out FILE", "write the history to this file, not to stdout", dest="file")
    flags.ledger_only()


@command("ledger", given_up="stopped at once: the history is incomplete")
def run_history(frame: CommandFrame) -> int:
    """Write the history of all keys to stdout or a file, and return the exit code."""
    options, settings = frame.options, frame.settings
    target = parse_target(options.target)
    refuse_ledger(options.file, settings, "--out")

    work = partial(export_history, target=target, name=options.form)
    counts = _written(frame, target, work, lambda counts: counts.complete)
    if not counts.complete:
        say("stopped: the history is incomplete")
    elif not counts.lines:
        say(f"the ledger has no history of {visible(target.uri)}: check the bucket and the prefix")
    return 0 if counts.complete else 4


def declare_import(flags: Flags) -> None:
    """Declare the flags of `auditor digests import`.

    auditor digests import SHA256SUMS s3://my-bucket/masters/ --ledger sqlite:digests.db
    auditor digests import manifest-md5.txt s3://my-bucket --ledger dynamodb:digests --manifest bagit
    """
    flags.add("files FILE", "manifests, whose names are keys below the prefix", nargs="+")
    flags.add(_TARGET, "the bucket, and the prefix before each name")
    flags.settings(algorithms="only digests of these algorithms (all in the manifest)")
    form = "format: that of sha256sum, sha1sum and md5sum; BagIt's; or a table (by default detected)"
    flags.add("--manifest", form, choices=("auto", "sha256sum", "bagit", "csv"), default="auto")
    flags.ledger_only()
    flags.form()


@command("ledger", given_up="stopped at once; import again for the rest")
def run_import(frame: CommandFrame) -> int:
    """Record the digests of manifests as expected ones, print the counts, and return the exit code."""
    options, settings = frame.options, frame.settings
    target = parse_target(options.target)
    wanted = settings.algorithms if options.algorithms is not None else ()
    with ExitStack() as stack:
        sources = [stack.enter_context(closing(ManifestFile(path))) for path in options.files]
        spool = stack.enter_context(Spool(sources))
        files = read_all(sources, spool, target.prefix, options.manifest, wanted)
        work = partial(import_all, spool, target=target, imported_at=seconds_in_utc(datetime.now(UTC)))
        done = signals.run(_with_ledger(target, settings, work))
    for sentence in _remarks(files, target):
        say(sentence)
    _print(files, done, target, frame)
    if not done.complete:
        say("stopped: the ledger has what is counted; import again for the rest")
    return 0 if done.complete else 4


def _remarks(files: Sequence[Read], target: Target) -> Iterator[str]:
    for file in files:
        if not file.form:
            yield f"{file.file} left out: it lists the bag's own files, not its payload"
        if file.other:
            yield f"{file.file}: {counted(file.other, 'digest')} of other algorithms left out"
    if target.prefix and not target.prefix.endswith("/"):
        example = visible(f"{target.prefix}name")
        yield f"names were appended to the prefix as they are, as in {example}: end it with / if it is a folder"


def _print(files: Sequence[Read], done: Imported, target: Target, frame: CommandFrame) -> None:
    digests = sum(file.digests for file in files)
    words = (
        f"{visible(target.uri)}: {counted(digests, 'digest')} of {counted(len(files), 'file')},"
        f" {done.new:,} new to the ledger, {done.known:,} known before, complete: {'yes' if done.complete else 'NO'}"
    )
    document = {
        "target": {"bucket": target.bucket, "prefix": target.prefix},
        "files": [
            {"file": one.file, "manifest": one.form or None, "digests": one.digests, "other_algorithms": one.other}
            for one in files
        ],
        "digests": digests,
        "new": done.new,
        "known": done.known,
        "complete": done.complete,
    }
    frame.print_lines(document, [words])


async def _with_ledger(target: Target, settings: Settings, work: Callable[..., Awaitable[T]]) -> T:
    """Do work on the digests of a target with the ledger, show its progress, and return its result. work: takes the
    ledger, and `go_on`: a function that notes how many keys, lines or digests are done, and returns False once a signal
    has asked the work to stop.
    """
    stop, what, done = signals.stop_on_signals(), visible(target.uri), 0

    def go_on(number: int) -> bool:
        nonlocal done
        done = number
        return not stop

    first_word(f"asking the ledger about {what}")
    async with shown(counting(what, lambda: done)), ledger_of(settings) as ledger:
        return await work(ledger=ledger, go_on=go_on)


def declare_import_report(flags: Flags) -> None:
    """Declare the flags of `auditor digests import-report`.

    auditor digests import-report s3://reports/job-1/manifest.json --ledger dynamodb:digests
    """
    flags.add("reports REPORT", "the report's folder, manifest.json or a CSV: a path or s3://BUCKET/KEY", nargs="+")
    flags.settings("ledger", engine="client that reads: direct, aioboto3 or boto3")
    flags.settings("max_rate")
    flags.connection()
    flags.form()


@command("ledger")
def run_import_report(frame: CommandFrame) -> int:
    """Record the checksums of the reports, print the counts, and return the exit code."""
    first_word(f"reading {counted(len(frame.options.reports), 'report')} into the ledger")
    counts = signals.run(_import_reports(frame.settings, frame.options.reports))
    frame.print(counts, lambda: _report_text(counts))
    return counts.exit_code


async def _import_reports(settings: Settings, reports: Sequence[str]) -> ImportCounts:
    rate, unlimited = RateLimit(settings.max_rate), replace(settings, max_calls=None)

    def open_engine(bucket: str) -> AbstractAsyncContextManager[Engine]:
        return open_in_its_region(settings.engine, connection_to(bucket, settings, BATCH))

    @cache  # a caller adapts its concurrency to the bucket
    def caller(bucket: str) -> Caller:
        return caller_of(bucket, unlimited, rate, ConcurrencyLimit(BATCH))

    with ExitStack() as stack:
        places = [open_report(report, settings) for report in reports]
        for store, _ in places:
            stack.enter_context(store)
        async with ledger_of(settings) as ledger, EnginePool(open_engine) as engines:
            importer = Importer(ledger, engines, caller)
            async with shown(counting("the reports", lambda: _done(importer.counts))):
                for store, path in places:
                    await importer.take(store, path)
    return importer.counts


def _done(counts: ImportCounts) -> int:
    done = counts.recorded + counts.known + counts.superseded + counts.composite + counts.unusable + counts.failed
    return done + counts.conflicts


def _report_text(counts: ImportCounts) -> str:
    """Name the digests that are not recorded on stderr, and return the line of the counts."""
    for line in (*counts.failures, *counts.conflicting):
        where = visible(f"{line['bucket']}/{line['key']}")
        say(f"s3://{where}: {visible(str(line['code']))}")
    return (
        f"{counted(counts.recorded, 'digest')} recorded from S3, {counts.known:,} known before,"
        f" {counts.superseded:,} of objects that are gone or replaced, {counts.composite:,} composite,"
        f" {counts.unusable:,} unusable, {counts.conflicts:,} in conflict with the ledger, {counts.failed:,} failed\n"
    )


def declare_retire(flags: Flags) -> None:
    """Declare the flags of `auditor digests retire`.

    auditor digests retire s3://my-bucket/old.tif --by Ada --reason 'replaced by new.tif' --ledger sqlite:d.db
    """
    _decision(flags)


def declare_acknowledge(flags: Flags) -> None:
    """Declare the flags of `auditor digests acknowledge`.

    auditor digests acknowledge s3://my-bucket/a.tif --by Ada --reason 'restored' --ledger sqlite:digests.db
    """
    _decision(flags)


def _decision(flags: Flags) -> None:
    flags.add("targets s3://BUCKET/KEY", "whole keys", nargs="+")
    flags.add("--by NAME", "your name, for the history", required=True)
    flags.add("--reason TEXT", "the reason", required=True)
    flags.add("--version ID", "only this version of the key")
    flags.ledger_only()
    flags.form()


@command("ledger")
def run_retire(frame: CommandFrame) -> int:
    """Note in the history of each key that it is no longer expected."""
    return _decided(frame, _retired)


@command("ledger")
def run_acknowledge(frame: CommandFrame) -> int:
    """Note in the history of each key that its last findings are looked into."""
    return _decided(frame, _acknowledged)


def _decided(frame: CommandFrame, events_of: Callable[..., Awaitable[list[Event]]]) -> int:
    """Write a person's decision on each key into the ledger's history, print the events, and return 0. events_of: makes
    the events of one key.
    """
    options = frame.options
    targets = list(dict.fromkeys(map(whole_key, options.targets)))
    word = {"by": _text(options.by, "--by"), "reason": _text(options.reason, "--reason")}
    frame.ask_ledger()

    async def tell() -> Told:
        """All events are made before the first is written: if one key is wrong, nothing is written."""
        async with ledger_of(frame.settings) as ledger:
            told = [(target, await events_of(ledger, target, options.version, word)) for target in targets]
            for target, events in told:
                await ledger.note(target.bucket, events)
        return told

    told = loops.run(tell())
    each = [{"bucket": target.bucket, **asdict(event)} for target, events in told for event in events]
    frame.print_lines({"events": each}, _lines(told))
    return 0


def _text(text: str, flag: str) -> str:
    if not text.strip() or len(text) > LONGEST:
        raise UsageError(f"{flag} must have 1 to {LONGEST:,} characters")
    return text.strip()


async def _retired(ledger: KeyHistory, target: Target, version: str | None, word: dict[str, str]) -> list[Event]:
    record = await ledger.subject(target.bucket, target.prefix)
    if record is None:
        raise RunError(f"the ledger knows nothing of {visible(target.uri)}: give the whole key, exactly as it is")
    if version is not None and version not in [one.version_id for one in record.versions]:
        known = ", ".join(visible(one.version_id) for one in record.versions[-5:]) or "none"
        raise RunError(
            f"the ledger has no version {visible(version)[:100]} of {visible(target.uri)}: its versions are {known}"
        )
    return [Event(key=target.prefix, at=now_in_utc(), what="retired", version_id=version, detail=word)]


async def _acknowledged(ledger: KeyHistory, target: Target, version: str | None, word: dict[str, str]) -> list[Event]:
    history = await ledger.history(target.bucket, target.prefix)
    events = acknowledgements(history, now_in_utc(), word["by"], word["reason"])
    chosen = [event for event in events if version in (None, event.version_id)]
    if not chosen:
        raise RunError(
            f"the history of {visible(target.uri)} does not end with a finding: there is nothing to acknowledge"
        )
    return chosen


def _lines(told: Told) -> Iterator[str]:
    for target, events in told:
        for event in events:
            version = "" if event.version_id is None else f", version {visible(event.version_id)}"
            finding = f" {event.detail['finding']}" if "finding" in event.detail else ""
            yield f"{event.what}{finding}: {visible(target.uri)}{version}"
