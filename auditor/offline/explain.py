"""Explain the access to single objects: live, by a few calls on the bucket, or from a run folder without any."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Final, NamedTuple

from msgspec.structs import replace

from auditor.audit.ask_bucket import AskedBucket, open_asked
from auditor.config.resources import caller_of
from auditor.config.settings import Settings
from auditor.errors import BucketError, ListingError, OutputError, UsageError
from auditor.model.access import Audience, ObjectAccess, Reason
from auditor.model.bucket import BUCKET_OWNER_ENFORCED
from auditor.model.object import Ask, ObjectRef, Outcome, Skipped
from auditor.model.run_lines import ObjectLine
from auditor.model.target import Target, parse_target
from auditor.offline.explanation import Explanation
from auditor.reports.summary import not_looked_at
from auditor.rules.base import ACLS_DISABLED
from auditor.runs.paths import RUN_ID, run_path
from auditor.runs.reading import RunReader, last_run
from auditor.runs.renewals import ObjectId, RenewedObject, read_renewals
from auditor.s3.calls import Caller, ConcurrencyLimit
from auditor.s3.gather import NO_OBJECT_ACLS, stand_in
from auditor.s3.listing import pages
from auditor.s3.object_reader import ObjectReader
from auditor.s3.rate import RateLimit
from auditor.text import counted, visible
from auditor.verdict.judge import VerdictJudge

CALLS_AT_ONCE: Final = 4
UNFINISHED: Final = "the keys that the run did not reach, because it is not complete"


class ObjectName(NamedTuple):
    """The name of one object version. version_id: None for the current one."""

    bucket: str
    key: str
    version_id: str | None = None

    @property
    def text(self) -> str:
        """The name for a sentence, safe to print."""
        version = "" if self.version_id is None else f", version {visible(self.version_id)},"
        return f"{visible(f's3://{self.bucket}/{self.key}')}{version}"


def name_of(uri: str, version_id: str | None = None) -> ObjectName:
    """Return the object that `s3://BUCKET/KEY` names. Raises UsageError for any other text."""
    target = parse_target(uri)
    if not target.prefix:
        raise UsageError(f"{visible(target.uri)} names no object: write s3://BUCKET/KEY, the whole key")
    return ObjectName(target.bucket, target.prefix, version_id)


def run_place(run: str, bucket: str, settings: Settings) -> str:
    """Return the place of the run folder that a user names by its place, or by the run's ID below `out`."""
    return f"{settings.out.rstrip('/')}/{run_path(bucket, run)}" if RUN_ID.fullmatch(run) else run


class LiveBucket:
    """A bucket that is ready to be asked about single objects. caller: makes the calls. trusted: as in the settings."""

    def __init__(self, asked: AskedBucket, caller: Caller, trusted: frozenset[str]) -> None:
        self._facts = facts = asked.facts
        self._engine = engine = asked.engine
        self._caller = caller
        disabled = facts.ownership == BUCKET_OWNER_ENFORCED
        self._ask = Ask(Skipped(ACLS_DISABLED) if disabled else None)
        self._reader = ObjectReader(engine, caller, self._ask, (), stand_in(facts), asked.keys)
        self._trusted = trusted

    async def explain(self, name: ObjectName) -> Explanation:
        """Read the object's listing entry, ACL and HEAD, and explain the access. Raises UsageError if there is no such
        object, and BucketError if the listing fails.
        """
        ref = await self._look_up(name)
        evidence = await self._reader.read(ref)
        if evidence.vanished:
            raise UsageError(f"{name.text} was deleted while it was read: there is nothing to explain")
        judge = VerdictJudge(self._facts, self._trusted, name.version_id is not None, datetime.now(UTC))
        unasked = Skipped(NO_OBJECT_ACLS) if self._reader.lacks_acls else self._ask.acl
        return Explanation(
            bucket=name.bucket,
            key=name.key,
            version_id=name.version_id,
            access=judge.access(evidence.ref, evidence.acl, evidence.head),
            not_looked_at=tuple(not_looked_at(self._facts, Target(name.bucket, versions=True), unasked)),
        )

    async def _look_up(self, name: ObjectName) -> ObjectRef:
        """Return the object's entry in the listing. Raises UsageError if there is none."""
        refs, markers = await self._listed(name, versions=name.version_id is not None)
        wanted = [ref for ref in refs if (ref.key, ref.version_id) == (name.key, name.version_id)]
        if wanted:
            return wanted[0]
        if name.version_id is not None:
            which = f"; it may be one of its {counted(markers, 'delete marker')}, which hold no data" if markers else ""
            raise UsageError(f"{name.text} is not there{which}: check the version's ID")
        try:
            refs, markers = await self._listed(name, versions=True)
        except ListingError:
            raise
        except BucketError:  # the caller may lack the right to list versions
            refs, markers = [], 0
        if markers:
            left = f": name one of its {counted(len(refs), 'version')} with --version-id" if refs else ""
            raise UsageError(f"{name.text} is deleted: its current version is a delete marker{left}")
        raise UsageError(f"{name.text} does not exist: give the whole key, exactly as it is spelled")

    async def _listed(self, name: ObjectName, *, versions: bool) -> tuple[list[ObjectRef], int]:
        """List the key alone. Return its entries, and the number of its delete markers."""
        target = Target(name.bucket, name.key, versions, stop_at=name.key)
        steps = [step async for page in pages(self._engine, self._caller, target) for step in page]
        return [step.ref for step in steps if step.ref is not None], sum(step.delete_markers for step in steps)


@asynccontextmanager
async def live_bucket(bucket: str, settings: Settings) -> AsyncIterator[LiveBucket]:
    """Read the bucket's settings, and open an engine to read its objects, for the `with` block. Raises RunError."""
    settings = replace(settings, max_calls=None)
    caller = caller_of(bucket, settings, RateLimit(settings.max_rate), ConcurrencyLimit(CALLS_AT_ONCE))
    async with open_asked(bucket, settings, caller, CALLS_AT_ONCE, reads_keys=settings.key_policies) as asked:
        yield LiveBucket(asked, caller, settings.trusted)


def explain_from_run(run: RunReader, name: ObjectName) -> list[Explanation]:
    """Explain the object by its lines in a run folder, without a request to its bucket: one explanation, or one for
    each version if the run lists versions and the name has none. What was read of the object since, after an event of
    S3, counts in place of its line. Blocks.

    Raises UsageError if the run has no such object, or no verdict of it.
    """
    if name.bucket != run.bucket_name:
        raise UsageError(f"the run {run.run_id} covers the bucket {run.bucket_name}: it has no {name.text}")
    renewed = _renewed(run, name.key)
    lines = [one for one in run.of_key(name.key) if (one.key, one.version_id) not in renewed]
    lines += [one.line for one in renewed.values()]
    wanted = [line for line in lines if name.version_id in (None, line.version_id)]
    if not wanted:
        raise UsageError(_absent(run, name, lines))
    there = [line for line in wanted if line.outcome is not Outcome.VANISHED]
    if not there:
        raise UsageError(f"{name.text} was deleted while the run {run.run_id} read it: the run has no verdict for it")
    summary = run.summary
    unseen = summary.not_looked_at if summary is not None else ()
    if not run.complete:
        unseen = (*unseen, UNFINISHED)
    return [
        Explanation(
            bucket=name.bucket,
            key=line.key,
            version_id=line.version_id,
            access=_access(run, line),
            not_looked_at=unseen,
            run=run.run_id,
            renewed=one.at if (one := renewed.get((line.key, line.version_id))) is not None else None,
        )
        for line in there
    ]


def _renewed(run: RunReader, key: str) -> Mapping[ObjectId, RenewedObject]:
    """Return what was read of the key after events, if the run is the last one of its target. Blocks."""
    file = run.begun_with
    last = last_run(run.store, file.target)
    if last is None or last.run_id != run.run_id or not file.target.whole:
        return {}
    found = read_renewals(run.store, run.bucket_name, file.now, key=key) or {}
    return {name: one for name, one in found.items() if (name[1] is not None) == file.target.versions}


def _absent(run: RunReader, name: ObjectName, lines: Sequence[ObjectLine]) -> str:
    """Return the sentence on an object that the run does not have. lines: those of the key's other versions."""
    if lines and all(line.version_id is None for line in lines):
        return f"the run {run.run_id} lists no versions: leave --version-id out, or audit with --versions"
    if lines:
        return (
            f"{name.text} is not in the run {run.run_id}, which has {counted(len(lines), 'other version')} of the key"
        )
    if run.summary is not None and not (
        name.key.startswith(run.summary.target.prefix) and run.summary.target.covers(name.key)
    ):
        return f"{name.text} is not among the keys of the run {run.run_id}, which covers {_range(run.summary.target)}"
    if not run.complete:
        return (
            f"{name.text} is not in the run {run.run_id}, which is not complete: it may come after the run's last key"
        )
    return f"{name.text} is not in the run {run.run_id}: the key did not exist then, or is spelled differently"


def _range(target: Target) -> str:
    after = "" if target.start_after is None else f" after {visible(target.start_after)}"
    until = "" if target.stop_at is None else f" up to {visible(target.stop_at)}"
    return f"{visible(target.uri)}{after}{until}"


def _access(run: RunReader, line: ObjectLine) -> ObjectAccess:
    assert line.verdict is not None  # only a vanished object has none
    try:
        audience = tuple(map(Audience.parse, line.audience))
        return ObjectAccess(line.verdict, audience, tuple(map(Reason.parse, line.reasons)))
    except ValueError as error:
        raise OutputError(f"{run.uri}/objects has a damaged line ({error}): audit again") from error
