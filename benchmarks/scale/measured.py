"""What the benchmarks measured, in the units of the simulation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.launch import ROOT
from benchmarks.page import load
from benchmarks.parts import nights, shares
from benchmarks.scale.mode import Mode


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Figures of one processor of the machine that measured them (docs/performance.md). CPU is in seconds.

    call_cpu: of an ACL or HEAD call, beside an object whose facts are known. known_cpu: of an object that is listed,
    judged, compared with the last run and written, without a call. prior_cpu: of reading the facts of an object from
    where the mode keeps them. prior_source: where these come from. row_cpu: of a row of the Inventory that is read and
    left out, because it is of another range. line_bytes: of an object's compressed line. begin_seconds: of a cold
    invocation's begin, by the memory of the function in MB.
    """

    call_cpu: float
    known_cpu: float
    prior_cpu: Mapping[Mode, float]
    prior_source: str
    row_cpu: float
    line_bytes: float
    begin_seconds: Mapping[int, float]


def measured(results: Mapping[str, Any] | None = None) -> Measured:
    """Return the figures. results: of the benchmarks, by part; None for those of docs/performance/results.json."""
    found = load(ROOT / "docs") if results is None else results
    ways = {row["way"]: row for row in found["nights"]["rows"]}
    known = 1e-6 * ways[nights.KNOWN]["last"]["median"]
    asked = 1e-6 * ways[nights.ASKED]["last"]["median"]
    listed = 1e-6 * ways[nights.LISTED]["first"]["median"]
    return Measured(
        call_cpu=(asked - known) / 2,
        known_cpu=known,
        prior_cpu=dict.fromkeys((Mode.MIXED, Mode.INCREMENTAL), listed),
        prior_source="assumed: that of a key that is listed alone",
        row_cpu=listed,
        line_bytes=ways[nights.ASKED]["bytes"],
        begin_seconds={
            row["memory"]: row["cold"]["median"] / 1000
            for row in found["shares"]["rows"]
            if row["client"] == shares.FILED
        },
    )
