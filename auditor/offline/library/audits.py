"""The functions with which Python programs audit a bucket."""

from __future__ import annotations

import asyncio
import os
from typing import Unpack

from auditor.aio.blocking import run_blocking
from auditor.aio.stop import stopped_by
from auditor.audit.run import Audit
from auditor.config.keyword_types import AuditKeywords, ExplainKeywords
from auditor.config.keywords import Progress, check_texts, documented, ignored, plain_value, settings_from, target_from
from auditor.config.resources import open_resources
from auditor.offline.explain import explain_from_run, live_bucket, name_of, run_place
from auditor.progress import reporting
from auditor.reports.explain import Explanation
from auditor.runs import folder_place
from auditor.runs.run import Run


@documented(AuditKeywords)
def audit_bucket(
    uri: str,
    *,
    start_after: str | None = None,
    stop_at: str | None = None,
    resume: str | None = None,
    config: str | None = None,
    progress: Progress = ignored,
    **settings: Unpack[AuditKeywords],
) -> Run:
    """Audit a bucket or a prefix, and return the run at its end. Works in a notebook too.

    The parameters and the errors are those of audit_bucket_async, without `stop`.
    """
    return run_blocking(
        lambda: audit_bucket_async(
            uri,
            start_after=start_after,
            stop_at=stop_at,
            resume=resume,
            config=config,
            progress=progress,
            **settings,
        )
    )


@documented(AuditKeywords)
async def audit_bucket_async(
    uri: str,
    *,
    start_after: str | None = None,
    stop_at: str | None = None,
    resume: str | None = None,
    config: str | None = None,
    stop: asyncio.Event | None = None,
    progress: Progress = ignored,
    **settings: Unpack[AuditKeywords],
) -> Run:
    """Audit a bucket or a prefix, and return the run at its end.

    uri: `s3://BUCKET[/PREFIX]`. start_after, stop_at: audit only the keys after start_after, up to and including
    stop_at. resume: ID of a run to continue. config: path of an auditor.toml. stop: an event; once it is set, the
    listing stops, and objects in flight are finished. progress: called with a Snapshot each second. settings: the flags
    of `auditor audit` as keywords, such as `max_rate=500`.

    Raises UsageError for a wrong argument, and RunError if the run cannot continue; what is written by then stays.
    """
    found = settings_from(settings, AuditKeywords, config)
    check_texts(resume=resume)
    target = target_from(uri, found, start_after, stop_at)
    async with open_resources(found, [target]) as resources, stopped_by(stop) as asked:
        audit = Audit(target, found, resources, asked, run_id=resume)
        async with reporting(audit.snapshot, progress):
            summary = await audit.run()
    connection = {"endpoint_url": found.endpoint_url, "profile": found.profile, "region": found.region}
    return await asyncio.to_thread(Run, summary.out, **connection)


@documented(ExplainKeywords)
def explain(
    uri: str,
    *,
    run: str | os.PathLike[str] | None = None,
    version_id: str | None = None,
    config: str | None = None,
    **settings: Unpack[ExplainKeywords],
) -> list[Explanation]:
    """Explain who can reach an object, and why. The parameters and the errors are those of explain_async."""
    return run_blocking(lambda: explain_async(uri, run=run, version_id=version_id, config=config, **settings))


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
    connection = {"endpoint_url": found.endpoint_url, "profile": found.profile, "region": found.region}

    def read() -> list[Explanation]:
        with folder_place.open_run(place, **connection) as opened:
            return explain_from_run(opened, name)

    return await asyncio.to_thread(read)
