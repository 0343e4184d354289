"""Foresee which facts of the last run an audit that begins now would keep, without reading an object."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from datetime import UTC, datetime

from auditor.audit.judged_by import judge_of
from auditor.audit.keeping.begin import Opening
from auditor.audit.keeping.source import KeepingSource
from auditor.config.settings import Settings
from auditor.model.bucket import BucketFacts
from auditor.model.dates import seconds_in_utc
from auditor.rules.plan import Plan
from auditor.runs.reading import RunReader
from auditor.s3.listing import Listed
from auditor.s3.object_reader import ObjectReader


def foreseen(
    pages: AsyncGenerator[list[Listed], None],
    last: RunReader,
    reader: ObjectReader,
    settings: Settings,
    facts: BucketFacts,
    plan: Plan,
    clock: Callable[[], float],
    *,
    versions: bool,
    ledger: bool,
) -> AsyncGenerator[list[Listed], None]:
    """Yield the pages of a whole target's listing with the facts that are kept. Nothing is written.

    last: the target's last complete run. reader: tells which facts the audit asks for; it is not asked for any.
    settings: `keep` is set. clock: returns the present time, in seconds since 1970. versions: True if the target lists
    versions. ledger: True if the audit has a ledger.
    """
    now = datetime.fromtimestamp(clock(), UTC)
    opening = Opening(last, settings, facts, plan, seconds_in_utc(now), ledger=ledger, tidies=False)
    judge = judge_of(settings, plan, facts, versions=versions, now=now)
    return KeepingSource(opening, reader, judge, clock).pages(pages, asyncio.to_thread)
