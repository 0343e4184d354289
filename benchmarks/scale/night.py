"""One night of one bucket: its calls, hops, seconds and files, by plain arithmetic."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from auditor.audit.sources.inventory_by_range import MEMORY
from auditor.config.settings import Settings
from auditor.lambdas.handover import MARGIN_SECONDS, MOST_HOPS
from auditor.offline.estimate import CALL_SECONDS
from auditor.runs.segment import PART_LINES
from auditor.s3.concurrency import AUTO_CEILING
from benchmarks.scale.measured import Measured
from benchmarks.scale.mode import Mode

PAGE_KEYS: Final = 1000
"""Keys of a page of ListObjectsV2, at most (S3 API reference)."""
LIST_SECONDS: Final = 0.1
"""Seconds until a page of the listing is answered. Pages come one after the other. An assumption: AWS names 100 to 200
ms for a small object's first byte."""
FUNCTION_SECONDS: Final = 900
"""`auditTimeout` of deploy/parameters.yml, and Lambda's longest."""
WHOLE_CPU: Final = 1769
"""Megabytes of a function that has a whole CPU. An audit is one event loop and cannot use more (AWS Lambda guide)."""
DISK: Final = 512
"""Megabytes of a function's own files: Lambda's default, which the audit function has."""
PART_SECONDS: Final = 60
"""Longest time that a part of a run folder is open."""
PART_FILES: Final = 3
"""Files that are put for a part: objects, findings, the checkpoint. A part without a finding has two."""
HOP_FILES: Final = 11
"""Calls to the place of the run folders at the begin and at the end of an invocation (docs/performance.md)."""
ROW_DISK: Final = 130
"""Bytes of a row of the Inventory while it is sorted on disk: the key, and some 70 more. An assumption."""
ROW_MEMORY: Final = ROW_DISK + 41
"""Bytes of a row in memory, with those of its object and its place in a list."""
SPREAD_MEMORY: Final = MEMORY
SPREAD_SHARE: Final = 0.7
SORTED_SHARE: Final = 0.5
"""CPU of spreading a row, and of sorting and looking up a spread one, as shares of reading, sorting and looking it up
in one process. 6.2 and 4 of 8.9 us, on 200,000 rows and 64 ranges."""
MB: Final = 10**6
LONGEST_CHAIN: Final = MOST_HOPS + 1
"""Invocations in a row that one function may have."""
LONGEST_CHILD: Final = 2500
"""Invocations in a row for a range of a map: an execution has at most 25,000 events (Step Functions quotas), and an
invocation some ten of them.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Night:
    """The choices of a night.

    head: False at level exposure, where an object has an ACL alone. changed: share of the objects that are new or
    overwritten in a night. acl_days, head_days: the limits of `keep`, in nights; None: a fact is kept while the object
    stands. ranges: 1 for one function that hands on to itself, else those of the map. at_once: ranges that run at the
    same time. max_rate: calls a second, of all ranges together. memory, disk: MB of a function, and of its own files.
    inventory_days: from one Inventory to the next. machine: True for one process on a machine in place of functions: it
    reads the Inventory once, on a disk that holds it. kept_nights: nights that a run folder is kept. ledger_units: read
    units of the ledger for an object; 0 without a ledger.
    """

    objects: int
    mode: Mode = Mode.LIVE
    head: bool = True
    changed: float = 0.01
    acl_days: float | None = None
    head_days: float | None = None
    ranges: int = 1
    at_once: int = 1
    max_rate: float = Settings().max_rate or math.inf
    memory: int = WHOLE_CPU
    disk: int = DISK
    storage_class: str = "STANDARD"
    inventory_days: float = 1.0
    machine: bool = False
    kept_nights: int = 400
    data_events: bool = False
    ledger_units: float = 0.0
    shared_files: bool = False

    @property
    def lists(self) -> int:
        """LIST calls: a page for each 1,000 keys, and one more for each further range, which begins within a page."""
        return max(1, math.ceil(self.objects / PAGE_KEYS)) + self.ranges - 1

    @property
    def changed_calls(self) -> int:
        """Calls on objects that are new or changed; live, on all objects."""
        return round(self.objects * self.asked) * (1 + self.head)

    @property
    def asked(self) -> float:
        """Share of the objects that are asked because they changed. An Inventory of several days is half of them old,
        on the mean of its nights, and all changes since then are asked each night.
        """
        if self.mode is Mode.LIVE:
            return 1.0
        nights = (self.inventory_days + 1) / 2 if self.mode is Mode.MIXED else 1.0
        return min(1.0, self.changed * nights)

    @property
    def due_calls(self) -> int:
        """Calls on objects whose kept facts are due: a limit of N nights gives N - 1 turns (docs/scale.md)."""
        if self.mode is Mode.LIVE:
            return 0
        limits = (self.acl_days, self.head_days if self.head else None)
        kept = self.objects * (1 - self.asked)
        return sum(round(kept / max(1.0, limit - 1)) for limit in limits if limit is not None)

    @property
    def object_calls(self) -> int:
        """All ACL and HEAD calls."""
        return self.changed_calls + self.due_calls

    @property
    def s3_calls(self) -> int:
        """All calls on the audited bucket, which the ceiling holds."""
        return self.lists + self.object_calls

    @property
    def spreads(self) -> bool:
        """True if the plan reads the Inventory once, and spreads its rows over the ranges."""
        return self.mode is Mode.MIXED and self.ranges > 1

    @property
    def pieces(self) -> int:
        """Files of the spread rows: each time the memory of the plan is full, one for each range."""
        return math.ceil(self.objects * ROW_MEMORY / SPREAD_MEMORY) * self.ranges if self.spreads else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """The course of a night. seconds: from the begin to the end. hops: invocations in a row for one range, at most.
    invocations: of the audit function in all; 0 on a machine. billed: seconds of all invocations. calls_a_second: on
    the mean. limit: what holds it back. parts: parts of the run folder. most_hops: that a range may have.
    """

    seconds: float
    hops: int
    invocations: int
    billed: float
    calls_a_second: float
    limit: str
    parts: int
    most_hops: int

    @property
    def too_long(self) -> bool:
        """True if a range needs more invocations in a row than it may have."""
        return self.hops > self.most_hops


def range_seconds(night: Night, found: Measured, at_once: int) -> tuple[float, str]:
    """Return the seconds that one of the ranges takes, and what holds it back.

    at_once: ranges that share the ceiling.
    """
    share = 1 / night.ranges
    times = {
        "the ceiling of calls": night.s3_calls * share / (night.max_rate / at_once),
        "calls in flight": night.s3_calls * share * CALL_SECONDS / AUTO_CEILING,
        "the listing": night.lists * share * LIST_SECONDS,
        "CPU": cpu_seconds(night, found) * share / min(1.0, night.memory / WHOLE_CPU),
    }
    limit = max(times, key=lambda name: times[name])
    return times[limit], limit


def cpu_seconds(night: Night, found: Measured) -> float:
    """Return the CPU seconds of all objects: known facts are read from a line each, asked ones take their calls. What
    each invocation does at its begin, with an Inventory above all, comes beside them.
    """
    read = night.objects * found.prior_cpu[night.mode] if night.mode is Mode.INCREMENTAL else 0.0
    return night.objects * found.known_cpu + night.object_calls * found.call_cpu + read


def pace(night: Night, found: Measured) -> Pace:
    """Return the course of the night. Its seconds are infinite if an invocation has no time left for objects."""
    if night.machine:
        return _on_a_machine(night, found)
    most_hops = LONGEST_CHAIN if night.ranges == 1 else LONGEST_CHILD
    at_once = min(night.ranges, night.at_once)
    seconds, limit = range_seconds(night, found, at_once)
    begin = begin_seconds(night, found)
    window = FUNCTION_SECONDS - MARGIN_SECONDS - begin
    full = night.mode is Mode.MIXED and night.objects / night.ranges * ROW_DISK > night.disk * MB
    if window <= 0 or full:
        return Pace(
            seconds=math.inf, hops=most_hops + 1, invocations=0, billed=math.inf, calls_a_second=0.0,
            limit="the disk for the Inventory" if full else "reading the Inventory", parts=0, most_hops=most_hops,
        )  # fmt: skip
    hops = max(1, math.ceil(seconds / window))
    one = seconds + hops * begin
    plans, planning = spreading(night, found)
    whole = planning + math.ceil(night.ranges / at_once) * one
    parts = max(math.ceil(night.objects / night.ranges / PART_LINES), math.ceil(seconds / PART_SECONDS), hops)
    return Pace(
        seconds=whole,
        hops=hops,
        invocations=plans + hops * night.ranges,
        billed=planning + one * night.ranges,
        calls_a_second=night.s3_calls / whole,
        limit=limit,
        parts=parts * night.ranges,
        most_hops=most_hops,
    )


def _on_a_machine(night: Night, found: Measured) -> Pace:
    seconds, limit = range_seconds(night, found, 1)
    if night.mode is Mode.MIXED:
        seconds += night.objects * found.prior_cpu[Mode.MIXED]
    return Pace(
        seconds=seconds,
        hops=1,
        invocations=0,
        billed=0.0,
        calls_a_second=night.s3_calls / seconds,
        limit=limit,
        parts=max(math.ceil(night.objects / PART_LINES), math.ceil(seconds / PART_SECONDS)),
        most_hops=1,
    )


def cold_seconds(memory: int, found: Measured) -> float:
    """Return the seconds of a cold begin: those of the largest measured memory that is not above the function's."""
    return found.begin_seconds[max(size for size in found.begin_seconds if size <= memory)]


def begin_seconds(night: Night, found: Measured) -> float:
    """Return the seconds in which an invocation begins: cold, and with an Inventory with the rows of its range; one
    function reads and sorts all rows, a range sorts those that were spread to it.
    """
    cold = cold_seconds(night.memory, found)
    if night.mode is not Mode.MIXED:
        return cold
    share = SORTED_SHARE / night.ranges if night.spreads else 1.0
    return cold + night.objects * share * found.prior_cpu[Mode.MIXED] / min(1.0, night.memory / WHOLE_CPU)


def spreading(night: Night, found: Measured) -> tuple[int, float]:
    """Return the invocations of the plan that spreads the Inventory, besides the first, and the seconds of all."""
    if not night.spreads:
        return 0, 0.0
    cold = cold_seconds(night.memory, found)
    seconds = night.objects * SPREAD_SHARE * found.prior_cpu[Mode.MIXED] / min(1.0, night.memory / WHOLE_CPU)
    plans = max(1, math.ceil(seconds / (FUNCTION_SECONDS - MARGIN_SECONDS - cold)))
    return plans - 1, seconds + plans * cold
