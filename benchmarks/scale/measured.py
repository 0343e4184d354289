"""What the benchmarks measured, in the units of the simulation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from benchmarks.launch import ROOT
from benchmarks.page import load
from benchmarks.parts import nights, shares


class Mode(StrEnum):
    """Where a night's facts come from. LIVE: a call for each fact. MIXED: S3 Inventory, and calls for what changed
    since. INCREMENTAL: the last run, and calls for what changed or is due by its age. All keys are listed in each.
    """

    LIVE = "live"
    MIXED = "mixed"
    INCREMENTAL = "incremental"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Figures of one processor of the machine that measured them (docs/performance.md). CPU is in seconds.

    call_cpu: of an ACL or HEAD call, beside an object whose facts are known. known_cpu: of an object that is listed,
    judged, compared with the last run and written, without a call. prior_cpu: of reading the facts of an object from
    where the mode keeps them. line_bytes, row_bytes: of an object's compressed line, and of its row in an Inventory.
    begin_seconds: of a cold invocation's begin, by the memory of the function in MB.
    """

    call_cpu: float
    known_cpu: float
    prior_cpu: Mapping[Mode, float]
    line_bytes: float
    row_bytes: float
    begin_seconds: Mapping[int, float]


def measured(results: Mapping[str, Any] | None = None) -> Measured:
    """Return the figures. results: of the benchmarks, by part; None for those of docs/performance/results.json."""
    found = load(ROOT / "docs") if results is None else results
    ways = {row["way"]: row for row in found["nights"]["rows"]}
    last = {way: 1e-6 * row["last"]["median"] for way, row in ways.items()}
    known = last[nights.KNOWN]
    return Measured(
        call_cpu=(last[nights.ASKED] - known) / 2,
        known_cpu=known,
        prior_cpu={Mode.MIXED: last[nights.ROW], Mode.INCREMENTAL: last[nights.KEPT] - known},
        line_bytes=ways[nights.ASKED]["bytes"],
        row_bytes=ways[nights.ROW]["bytes"],
        begin_seconds={
            row["memory"]: row["cold"]["median"] / 1000
            for row in found["shares"]["rows"]
            if row["client"] == shares.FILED
        },
    )
