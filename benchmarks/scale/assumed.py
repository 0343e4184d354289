"""The choices that the tables of docs/scale.md compare."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from benchmarks.scale import bill
from benchmarks.scale.measured import Mode
from benchmarks.scale.night import Night

SIZES: Final = tuple(10**power for power in range(6, 11))
"""Numbers of objects that the page compares."""
USUAL_OBJECTS: Final = 10**7
BUCKETS: Final = 500
"""Buckets of the page's estate."""
ACL_DAYS: Final = 8.0
HEAD_DAYS: Final = 31.0
"""Limits of `keep` in the page's incremental runs: a seventh of the ACLs and a thirtieth of the HEADs are due each
night."""
FEW_NIGHTS: Final = 14


def _weekly(night: Night) -> Night:
    return replace(night, inventory_days=7.0) if night.mode is Mode.MIXED else night


Change = Callable[[Night], Night]
OPTIONS: Final[tuple[tuple[str, Change], ...]] = (
    ("CloudTrail data events are on", lambda one: replace(one, data_events=True)),
    ("the run folder is on EFS", lambda one: replace(one, shared_files=True)),
    ("5 % of the objects change, not 1 %", lambda one: replace(one, changed=0.05)),
    ("`auditMemory` is 512", lambda one: replace(one, memory=512)),
    (f"run folders are kept {FEW_NIGHTS} nights (`reportDays`)", lambda one: replace(one, kept_nights=FEW_NIGHTS)),
    ("one process on your own machine audits", lambda one: replace(one, machine=True)),
    ("S3 writes an Inventory each week, not each day", _weekly),
    ("level `exposure`: no HEAD", lambda one: replace(one, head=False)),
    ("level `fixity`", lambda one: replace(one, ledger_units=bill.LEDGER_UNITS)),
)
"""Choices beside the tables' own, each as a change of a night."""


def usual(mode: Mode, objects: int = USUAL_OBJECTS) -> Night:
    """Return the night of the page's tables: the defaults, and ages of what the last run read."""
    return Night(
        objects=objects,
        mode=mode,
        acl_days=ACL_DAYS if mode is Mode.INCREMENTAL else None,
        head_days=HEAD_DAYS if mode is Mode.INCREMENTAL else None,
    )
