"""Spread an S3 Inventory report over the ranges of a run when the run begins."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from auditor.audit.mixed.opening import open_reports, report_times
from auditor.audit.mixed.spreading import spread_newest
from auditor.config.settings import Settings
from auditor.errors import RunStopped
from auditor.runs.plan_file import PlanFile
from auditor.runs.stores.base import Store
from auditor.s3.inventory.place import InventoryPlace
from auditor.text import visible

log = logging.getLogger(__name__)


def spread_report(
    place: InventoryPlace, settings: Settings, store: Store, plan: PlanFile, stopped: Callable[[], bool]
) -> None:
    """Spread the newest report over the ranges of a run, or continue it. Blocks, and takes a while.

    place: of the reports. store: has the run folder. stopped: returns True once the work is to stop. Raises
    InventoryError if there is no report that can be used, and RunStopped after a stop; the next call then continues.
    """
    times = report_times(settings, time.time())
    try:
        with open_reports(place, settings) as reports:
            spread = spread_newest(reports, place, store, plan, times, stopped)
    except RunStopped as error:
        raise RunStopped(
            f"run {plan.run} was stopped while it read the inventory report: resume it with --resume {plan.run}"
        ) from error
    log.info("facts come from %s, of %s", visible(spread.origin.uri), spread.origin.created)
