"""Open the S3 Inventory that the settings name, for one audit."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Final

from auditor.aio.stop import Stop
from auditor.audit.mixed.reports import ReportTimes, load_newest
from auditor.audit.mixed.sorted_rows import SortedRows
from auditor.audit.mixed.source import MixedFacts, ReportLimits
from auditor.config.settings import Settings
from auditor.model.bucket import BucketFacts
from auditor.model.dates import seconds_in_utc
from auditor.model.target import Target
from auditor.runs.stores import open_store
from auditor.runs.stores.base import Store
from auditor.s3.engines import ASKING
from auditor.s3.inventory.configured import AskPage, inventory_place
from auditor.s3.inventory.place import InventoryPlace
from auditor.text import visible

log = logging.getLogger(__name__)

SKEW: Final = 900.0
"""Seconds by which a report may be of later than the present time: the clock of the auditor may be so much behind that
of S3, which refuses a request with a larger difference (RequestTimeTooSkewed, S3 API reference, error responses)."""


@asynccontextmanager
async def open_mixed(
    settings: Settings,
    target: Target,
    facts: BucketFacts,
    stop: Stop,
    clock: Callable[[], float],
    ask: AskPage,
) -> AsyncIterator[MixedFacts]:
    """Load the newest report of the target's bucket, and yield the source of its facts.

    facts: those of the bucket. stop: ends the loading. clock: returns the present time, in seconds since 1970. ask:
    makes a call on a setting of the bucket. Raises InventoryError if no report can be used, OutputError if their place
    cannot be read, InventoryMissing if it is not known, and RunStopped after a stop.
    """
    place = await inventory_place(settings.inventory, target, ask)
    limits, times = ReportLimits.of(settings.keep), report_times(settings, clock())

    def load() -> SortedRows:
        with open_reports(place, settings) as store:
            return load_newest(store, place, target, times=times, stopped=lambda: bool(stop))

    loaded = await asyncio.to_thread(load)
    log.info("facts come from %s, of %s", visible(loaded.origin.uri), loaded.origin.created)
    try:
        yield MixedFacts(loaded, facts, limits, clock)
    finally:
        await asyncio.to_thread(loaded.close)


def report_times(settings: Settings, now: float) -> ReportTimes:
    """Return the times that a report may be of. now: the present time, in seconds since 1970."""
    longest = ReportLimits.of(settings.keep).longest
    return ReportTimes(None if longest is None else _time(now - longest), _time(now + SKEW))


def _time(seconds: float) -> str:
    return seconds_in_utc(datetime.fromtimestamp(seconds, UTC))


def open_reports(place: InventoryPlace, settings: Settings) -> Store:
    """Open the bucket of the reports, by the credentials that read the audited bucket."""
    return open_store(
        f"s3://{place.bucket}",
        endpoint_url=settings.endpoint_url,
        profile=settings.profile,
        region=settings.region,
        role=settings.role,
        sdk=settings.engine not in ASKING,
        absent="check the destination that --inventory names",
    )
