"""Open the S3 Inventory that the settings name, for one audit."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from auditor.aio.stop import Stop
from auditor.audit.mixed.reports import LoadedInventory, load_newest
from auditor.audit.mixed.source import MixedFacts, ReportLimits
from auditor.config.settings import Settings
from auditor.model.bucket import BucketFacts
from auditor.model.dates import seconds_in_utc
from auditor.model.target import Target
from auditor.runs.stores import open_store
from auditor.s3.engines import ASKING
from auditor.s3.inventory.place import parse_place
from auditor.text import visible

log = logging.getLogger(__name__)


@asynccontextmanager
async def open_mixed(
    settings: Settings, target: Target, facts: BucketFacts, stop: Stop, clock: Callable[[], float]
) -> AsyncIterator[MixedFacts]:
    """Load the newest report of the target's bucket, and yield the source of its facts.

    facts: those of the bucket. stop: ends the loading. clock: returns the present time, in seconds since 1970. Raises
    InventoryError if no report can be used, OutputError if the place cannot be read, and RunStopped after a stop.
    """
    limits = ReportLimits.of(settings.keep)
    oldest = None
    if limits.longest is not None:
        oldest = seconds_in_utc(datetime.fromtimestamp(clock() - limits.longest, UTC))
    loaded = await asyncio.to_thread(_load, settings, target, oldest, lambda: bool(stop))
    log.info("facts come from %s, of %s", visible(loaded.uri), loaded.report.created)
    try:
        yield MixedFacts(loaded, facts, limits, clock)
    finally:
        await asyncio.to_thread(loaded.close)


def _load(settings: Settings, target: Target, oldest: str | None, stopped: Callable[[], bool]) -> LoadedInventory:
    place = parse_place(settings.inventory or "")
    store = open_store(
        f"s3://{place.bucket}",
        endpoint_url=settings.endpoint_url,
        profile=settings.profile,
        region=settings.region,
        sdk=settings.engine not in ASKING,
    )
    with store:
        return load_newest(store, place, target, oldest=oldest, stopped=stopped)
