"""The functions with which Python programs audit a bucket."""

from __future__ import annotations

import asyncio
from typing import Any

from auditor.aio.blocking import run_blocking
from auditor.aio.stop import stopped_by
from auditor.audit.run import Audit
from auditor.config.keywords import Progress, check_texts, ignored, settings_from, target_from
from auditor.config.resources import open_resources
from auditor.progress import reporting
from auditor.runs.run import Run


def audit_bucket(
    uri: str,
    *,
    start_after: str | None = None,
    stop_at: str | None = None,
    resume: str | None = None,
    config: str | None = None,
    progress: Progress = ignored,
    **settings: Any,
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


async def audit_bucket_async(
    uri: str,
    *,
    start_after: str | None = None,
    stop_at: str | None = None,
    resume: str | None = None,
    config: str | None = None,
    stop: asyncio.Event | None = None,
    progress: Progress = ignored,
    **settings: Any,
) -> Run:
    """Audit a bucket or a prefix, and return the run at its end.

    uri: `s3://BUCKET[/PREFIX]`. start_after, stop_at: audit only the keys after start_after, up to and including
    stop_at. resume: ID of a run to continue. config: path of an auditor.toml. stop: an event; once it is set, the
    listing stops, and objects in flight are finished. progress: called with a Snapshot each second. settings: the flags
    of `auditor audit` as keywords, such as `max_rate=500`.

    Raises UsageError for a wrong argument, and RunError if the run cannot go on; what is written by then stays.
    """
    found = settings_from(settings, config)
    check_texts(resume=resume)
    target = target_from(uri, found, start_after, stop_at)
    async with open_resources(found, [target]) as resources, stopped_by(stop) as asked:
        audit = Audit(target, found, resources, asked, run_id=resume)
        async with reporting(audit.snapshot, progress):
            summary = await audit.run()
    connection = {"endpoint_url": found.endpoint_url, "profile": found.profile, "region": found.region}
    return await asyncio.to_thread(Run, summary.out, **connection)
