"""The functions with which Python programs audit a bucket."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Sequence
from typing import Unpack

from msgspec import Struct

from auditor.aio.stop import Stop, stopped_by
from auditor.aio.tasks import together
from auditor.config.resources import Resources, open_resources
from auditor.config.settings import Settings
from auditor.errors import AuditorError, RunError, UsageError
from auditor.estate.start import AuditStart, check_jobs
from auditor.model.target import Target
from auditor.offline import folder_place
from auditor.offline.explain import explain_from_run, live_bucket, name_of, run_place
from auditor.offline.explanation import Explanation
from auditor.offline.library.blocking import blocking
from auditor.offline.library.keyword_types import AuditKeywords, ExplainKeywords
from auditor.offline.library.keywords import (
    Progress,
    check_texts,
    documented,
    ignored,
    plain_value,
    settings_from,
    target_from,
)
from auditor.offline.library.run import Run
from auditor.progress import reporting
from auditor.text import visible


@documented(AuditKeywords)
async def audit_bucket_async(
    uri: str,
    *,
    start_after: str | None = None,
    stop_at: str | None = None,
    resume: str | None = None,
    jobs: int | None = None,
    config: str | None = None,
    stop: asyncio.Event | None = None,
    progress: Progress = ignored,
    **settings: Unpack[AuditKeywords],
) -> Run:
    """Audit a bucket or a prefix, and return the run at its end.

    uri: `s3://BUCKET[/PREFIX]`. start_after, stop_at: audit only the keys after start_after, up to and including
    stop_at. resume: ID of a run to continue. jobs: number of processes that audit the ranges of the bucket; None for
    this process alone. config: path of an auditor.toml. stop: an event; once it is set, the listing stops, and objects
    in flight are finished. progress: called with a Snapshot each second. settings: the flags of `auditor audit` as
    keywords, such as `max_rate=500`.

    Raises UsageError for a wrong argument, and RunError if the run cannot continue; what is written by then stays.
    """
    found = settings_from(settings, AuditKeywords, config)
    check_texts(resume=resume)
    target = target_from(uri, found, start_after, stop_at)
    async with stopped_by(stop) as asked:
        (end,) = await _ends([target], found, jobs, asked, progress, resume)
    return await _run_of(end, found)


audit_bucket = blocking(audit_bucket_async, AuditKeywords)


@documented(AuditKeywords)
async def audit_buckets_async(
    uris: Iterable[str],
    *,
    jobs: int | None = None,
    config: str | None = None,
    stop: asyncio.Event | None = None,
    progress: Progress = ignored,
    **settings: Unpack[AuditKeywords],
) -> list[Run]:
    """Audit several buckets or prefixes, eight side by side, and return their runs in the order of `uris`.

    They share the limits of calls per second, of calls and of dollars. uris: `s3://BUCKET[/PREFIX]` each. The other
    parameters are those of audit_bucket_async; `progress` gets the snapshots of each target.

    Raises UsageError for a wrong argument before any call. Raises RunError, which names each target that failed, once
    the others have ended; their run folders are complete.
    """
    found = settings_from(settings, AuditKeywords, config)
    if isinstance(uris, str | bytes) or not isinstance(uris, Iterable):
        raise UsageError(f"the targets are {str(uris)[:100]!r}: give a list of texts like s3://BUCKET/PREFIX")
    targets = list(dict.fromkeys(target_from(uri, found, None, None) for uri in uris))
    async with stopped_by(stop) as asked:
        ends = await _ends(targets, found, jobs, asked, progress, None)
    if failed := [f"{one.target.uri}: {one.error}" for one in ends if one.error is not None]:
        raise RunError(visible("; ".join(failed)))
    return [await _run_of(one, found) for one in ends]


audit_buckets = blocking(audit_buckets_async, AuditKeywords)


class _End(Struct, frozen=True):
    """The end of a target's audit: the place of its run folder, or the error."""

    target: Target
    place: str = ""
    error: AuditorError | None = None


async def _ends(
    targets: Sequence[Target], settings: Settings, jobs: int | None, stop: Stop, progress: Progress, resume: str | None
) -> list[_End]:
    """Audit the targets, and return the end of each, in their order."""
    check_jobs(jobs, "jobs")
    start = AuditStart(settings, targets, jobs)
    permits = asyncio.Semaphore(start.at_once)

    async def one(target: Target, shared: Resources) -> _End:
        async with permits:
            try:
                async with start.resources_of(target, shared) as own:
                    audit = start.audit_of(target, settings, own, stop, run_id=resume, resume=True)
                    async with reporting(audit.snapshot, progress):
                        return _End(target, (await start.run(audit)).out)
            except AuditorError as error:
                return _End(target, error=error)

    async with open_resources(settings, targets) as resources:
        return await together(one(target, resources) for target in targets)


async def _run_of(end: _End, settings: Settings) -> Run:
    if end.error is not None:
        raise end.error
    return await asyncio.to_thread(Run, end.place, **settings.connection)


@documented(ExplainKeywords)
async def explain_async(
    uri: str,
    *,
    run: str | os.PathLike[str] | None = None,
    version_id: str | None = None,
    config: str | None = None,
    **settings: Unpack[ExplainKeywords],
) -> list[Explanation]:
    """Explain who can reach an object, and why: one explanation, or one for each version that the run has.

    uri: `s3://BUCKET/KEY`. run: path or URI of a run folder, or a run's ID below `out`; None to read the object itself.
    version_id: the version to explain; None for the current one, and in a run for all that it lists. config, settings:
    as for audit_bucket_async. Raises UsageError for a wrong argument, and for an object that is not there.
    """
    found = settings_from(settings, ExplainKeywords, config)
    folder = plain_value(run)
    check_texts(uri=uri, run=folder, version_id=version_id)
    name = name_of(uri, version_id)
    if folder is None:
        async with live_bucket(name.bucket, found) as bucket:
            return [await bucket.explain(name)]
    place = run_place(folder, name.bucket, found)

    def read() -> list[Explanation]:
        with folder_place.open_run(place, **found.connection) as opened:
            return explain_from_run(opened, name)

    return await asyncio.to_thread(read)


explain = blocking(explain_async, ExplainKeywords)
