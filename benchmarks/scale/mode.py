"""Where a night's facts come from."""

from __future__ import annotations

from enum import StrEnum


class Mode(StrEnum):
    """LIVE: a call for each fact. MIXED: S3 Inventory, and calls for what changed since. INCREMENTAL: the last run, and
    calls for what changed or is due by its age. All keys are listed in each of them.
    """

    LIVE = "live"
    MIXED = "mixed"
    INCREMENTAL = "incremental"
