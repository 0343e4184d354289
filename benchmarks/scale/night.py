"""One night of a bucket, or of several equal ones: its calls, invocations, seconds and files, by plain arithmetic."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from auditor.audit.limits import rate_share
from auditor.audit.plan_ranges import MOST
from auditor.audit.sources.inventory_by_range import MEMORY
from auditor.config.settings import Settings
from auditor.lambdas.deadline import MARGIN_SECONDS
from auditor.lambdas.scale import FASTEST, LONGEST_ALONE, MOST_ROWS, PER_FUNCTION, SECONDS_OF_RANGE, Scale
from auditor.runs.segment import PART_LINES
from benchmarks.scale.measured import Measured, Mode

PAGE_KEYS: Final = 1000
"""Keys of a page of ListObjectsV2, at most (S3 API reference)."""
LIST_SECONDS: Final = 0.1
"""Seconds until a page of the listing is answered. Pages come one after the other. An assumption: AWS names 100 to 200
ms for a small object's first byte."""
FUNCTION_SECONDS: Final = 900
"""`auditTimeout` of deploy/parameters.yml, and Lambda's longest."""
WINDOW: Final = FUNCTION_SECONDS - MARGIN_SECONDS
"""Seconds of an invocation until it stops for its deadline."""
WHOLE_CPU: Final = 1769
"""Megabytes of a function that has a whole CPU. An audit is one event loop and cannot use more (AWS Lambda guide)."""
DISK: Final = 512
"""Megabytes of a function's own files: Lambda's default, which the audit function has."""
PART_SECONDS: Final = 60
"""Longest time that a part of a run folder is open."""
ROW_DISK: Final = 130
"""Bytes of a row of the Inventory while it is sorted on disk: the key, and some 70 more. An assumption."""
ROW_MEMORY: Final = ROW_DISK + 41
"""Bytes of a row in memory, with those of its object and its place in a list."""
SPREAD_SHARE: Final = 0.7
SORTED_SHARE: Final = 0.5
"""CPU of spreading a row, and of sorting and looking up a spread one, as shares of reading, sorting and looking it up
in one process. 6.2 and 4 of 8.9 us, on 200,000 rows and 64 ranges."""
MB: Final = 10**6

SIDE_BY_SIDE: Final = 4
"""Buckets of an account that one invocation audits at once."""
START_STATES: Final = ("Kind", "Begin", "IsBegun", "Ranges", "ConcludeOn", "Conclude", "IsConcluded", "Complete")
AGAIN_STATES: Final = ("BeginOn", "Begin", "IsBegun")
RANGE_STATES: Final = ("Range", "IsRangeComplete")
"""Transitions of an execution, of each further invocation that begins it, and of each invocation on a range."""
CHILD_STATES: Final = ("the start, for which AWS counts one", "Done")
"""Transitions of each range."""
LONGEST_CHILD: Final = 2500
"""Invocations in a row on a range: an execution has at most 25,000 events (Step Functions quotas), and an invocation
some ten of them."""
YEAR: Final = 365 * 86_400.0
"""Longest time of an execution in seconds (Step Functions quotas)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Night:
    """The choices of a night.

    objects: of each bucket. buckets: that a start audits. head: False at level exposure, where an object has an ACL
    alone. changed: share of the objects that are new or overwritten in a night. acl_days, head_days: the limits of
    `keep`, in nights; None: a fact is kept while the object stands. max_rate: calls a second on a bucket.
    concurrency: `mapConcurrency`; None: auto. memory, disk: MB of a function, and of its own files. inventory_days:
    from one Inventory to the next. machine: True for one process on a machine in place of functions: it reads the
    Inventory once, on a disk that holds it. kept_nights: nights that a run folder is kept. ledger_units: read units of
    the ledger for an object; 0 without a ledger.
    """

    objects: int
    buckets: int = 1
    mode: Mode = Mode.LIVE
    head: bool = True
    changed: float = 0.01
    acl_days: float | None = None
    head_days: float | None = None
    max_rate: float = Settings().max_rate or math.inf
    concurrency: int | None = None
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
    def ranges(self) -> int:
        """Ranges of each bucket, as auditor.lambdas.scale makes them."""
        calls = self._pages + self.object_calls
        rows = self.objects / MOST_ROWS if self.mode is Mode.MIXED else 0
        if self.machine or (calls / min(self.max_rate, FASTEST) <= LONGEST_ALONE and rows <= 1):
            return 1
        return min(max(2, math.ceil(calls / (SECONDS_OF_RANGE * PER_FUNCTION)), math.ceil(rows)), MOST)

    @property
    def ceiling(self) -> float | None:
        """Calls a second on a bucket; None: unlimited."""
        return None if math.isinf(self.max_rate) else self.max_rate

    @property
    def at_once(self) -> int:
        """Functions at once, where there are as many ranges."""
        return Scale(at_once=self.concurrency).functions(self.ceiling, self.buckets)

    @property
    def _pages(self) -> int:
        return max(1, math.ceil(self.objects / PAGE_KEYS))

    @property
    def lists(self) -> int:
        """LIST calls: a page for each 1,000 keys, and one more for each further range, which begins within a page."""
        return self._pages + self.ranges - 1

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
        """All ACL and HEAD calls on a bucket."""
        return self.changed_calls + self.due_calls

    @property
    def s3_calls(self) -> int:
        """All calls on a bucket, which the ceiling holds."""
        return self.lists + self.object_calls

    @property
    def spreads(self) -> bool:
        """True if the Inventory is read once, and its rows are spread over the ranges."""
        return self.mode is Mode.MIXED and self.ranges > 1

    @property
    def pieces(self) -> int:
        """Files of the spread rows: each time the memory is full, one for each range."""
        return math.ceil(self.objects * ROW_MEMORY / MEMORY) * self.ranges if self.spreads else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """The course of a night. seconds: from the begin to the end. limit: what holds a range back. parts: of the run
    folder of a bucket. hops: invocations in a row on one range. invocations: of the audit function in all; 0 on a
    machine. transitions: of the state machine; 0 if one function does it all. billed: seconds of all invocations.
    """

    seconds: float
    limit: str
    parts: int = 0
    hops: int = 1
    invocations: int = 0
    transitions: int = 0
    billed: float = 0.0

    @property
    def too_long(self) -> bool:
        """True if the state machine cannot end it."""
        return self.hops > LONGEST_CHILD or self.seconds > YEAR


def range_seconds(night: Night, found: Measured, at_once: int) -> tuple[float, str]:
    """Return the seconds that one of the ranges takes, and what holds it back.

    at_once: functions at once; those on ranges of one bucket share its ceiling.
    """
    share = 1 / night.ranges
    rate = rate_share(night.ceiling, min(night.ranges, at_once)) or math.inf
    times = {
        "the ceiling of calls": night.s3_calls * share / rate,
        "calls in flight": night.s3_calls * share / PER_FUNCTION,
        "the listing": night.lists * share * LIST_SECONDS,
        "CPU": cpu_seconds(night, found) * share / _cpu(night),
    }
    limit = max(times, key=lambda name: times[name])
    return times[limit], limit


def _cpu(night: Night) -> float:
    return 1.0 if night.machine else min(1.0, night.memory / WHOLE_CPU)


def cpu_seconds(night: Night, found: Measured) -> float:
    """Return the CPU seconds of all objects of a bucket: known facts are read from a line each, asked ones take their
    calls. What each invocation does at its begin, with an Inventory above all, comes beside them.
    """
    read = night.objects * found.prior_cpu[night.mode] if night.mode is Mode.INCREMENTAL else 0.0
    return night.objects * found.known_cpu + night.object_calls * found.call_cpu + read


def cold_seconds(night: Night, found: Measured) -> float:
    """Return the seconds of a cold begin: those of the largest measured memory that is not above the function's."""
    if night.machine:
        return 0.0
    return found.begin_seconds[max(size for size in found.begin_seconds if size <= night.memory)]


def reading_seconds(night: Night, found: Measured, share: float) -> float:
    """Return the seconds that reading an Inventory takes. share: of the CPU that reading, sorting and looking up all
    rows takes.
    """
    if night.mode is not Mode.MIXED:
        return 0.0
    return night.objects * share * found.prior_cpu[Mode.MIXED] / _cpu(night)


def pace(night: Night, found: Measured) -> Pace:
    """Return the course of the night: of one function, or process, that does it all, else of the state machine too."""
    seconds, limit = range_seconds(night, found, night.at_once)
    begin = cold_seconds(night, found) + reading_seconds(night, found, 1.0)
    one = begin + seconds  # a further bucket begins no later than a cold function
    if night.buckets > 1:
        one = max(one / SIDE_BY_SIDE, night.s3_calls / PER_FUNCTION, cpu_seconds(night, found) / _cpu(night))
    parts = night.ranges * max(math.ceil(night.objects / night.ranges / PART_LINES), math.ceil(seconds / PART_SECONDS))
    done = 0 if night.ranges > 1 else min(night.buckets, int(WINDOW / one))
    if night.machine or done == night.buckets:
        alone, functions = night.buckets * one, not night.machine
        return Pace(seconds=alone, limit=limit, parts=parts, invocations=int(functions), billed=alone * functions)
    return _by_machine(night, found, parts, night.buckets - done)


def _by_machine(night: Night, found: Measured, parts: int, buckets: int) -> Pace:
    """Return the course of functions that work on equal ranges, so many at once, and end together. The last ones, if
    they are fewer, have the ceiling to themselves. Each invocation reads the rows of its range anew.

    buckets: that the first function leaves to the state machine. The seconds are infinite if an invocation has no time
    left for objects, or no disk.
    """
    cold, pairs = cold_seconds(night, found), buckets * night.ranges
    begin = cold + reading_seconds(night, found, SORTED_SHARE / night.ranges if night.spreads else 1.0)
    if begin >= WINDOW:
        return Pace(seconds=math.inf, limit="reading the Inventory", billed=math.inf)
    if night.mode is Mode.MIXED and night.objects / night.ranges * ROW_DISK > night.disk * MB:
        return Pace(seconds=math.inf, limit="the disk for the Inventory", billed=math.inf)
    at_once = min(pairs, night.at_once)
    seconds, limit = range_seconds(night, found, at_once)
    hops = math.ceil(seconds / (WINDOW - begin))
    rounds, rest = divmod(pairs, at_once)
    full = seconds + hops * begin
    last = range_seconds(night, found, rest)[0] + hops * begin if rest else 0.0
    spreading = buckets * reading_seconds(night, found, SPREAD_SHARE) if night.spreads else 0.0
    begins = max(1, math.ceil(spreading / (WINDOW - cold)))
    whole = night.buckets == night.ranges == 1  # the first function works on a single range until its margin
    first = WINDOW if buckets < night.buckets else cold
    beside = first * (not whole) + (begins + 1) * cold + spreading
    invocations = pairs * hops - whole
    return Pace(
        seconds=rounds * full + last + beside,
        limit=limit,
        parts=parts,
        hops=hops,
        invocations=invocations + begins + 2,
        transitions=len(START_STATES)
        + (begins - 1) * len(AGAIN_STATES)
        + pairs * len(CHILD_STATES)
        + invocations * len(RANGE_STATES),
        billed=rounds * at_once * full + rest * last + beside,
    )
