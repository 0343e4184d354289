"""The bill of a night: each term with its number of units, its price and its service."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from benchmarks.scale import prices
from benchmarks.scale.measured import Measured, Mode
from benchmarks.scale.night import Night, Pace, pace

NIGHTS: Final = 30
"""Nights of a month."""
GB: Final = 10**9
PART_FILES: Final = 3
"""Files that are put for a part: objects, findings, the checkpoint. A part without a finding has two."""
HOP_FILES: Final = 11
"""Calls to the place of the run folders at the begin and at the end of an invocation (docs/performance.md)."""
INVENTORY_KEPT: Final = 2
"""Inventories that are kept at a time."""
LEDGER_UNITS: Final = 0.054
"""Read units of an object that the ledger knows, read along with the listing (docs/ledger.md)."""
MB_IN_GB: Final = 1024

STORED: Final = "GB-months stored"
"""What is stored, in the terms of any service."""

S3_LIST: Final = "S3 LIST"
S3_CALLS: Final = "S3 ACL, HEAD"
S3_INVENTORY: Final = "S3 Inventory"
RUN_FOLDER: Final = "run folder"
LAMBDA: Final = "Lambda"
STEP_FUNCTIONS: Final = "Step Functions"
CLOUDTRAIL: Final = "CloudTrail"
DYNAMODB: Final = "DynamoDB"
EFS: Final = "EFS"
SERVICES: Final = (
    S3_LIST, S3_CALLS, S3_INVENTORY, RUN_FOLDER, LAMBDA, STEP_FUNCTIONS, CLOUDTRAIL, DYNAMODB, EFS,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Term:
    """A term of the bill. number: units of a night. dollars: of a night; for what is stored, a night's share."""

    service: str
    what: str
    number: float
    dollars: float


@dataclass(frozen=True, slots=True)
class Simulated:
    """A night with its course and the terms of its bill that are not zero; those of a night that never ends are
    infinite.
    """

    course: Pace
    terms: list[Term]

    @property
    def dollars(self) -> float:
        """Dollars of the night, the share of what is stored included."""
        return total(self.terms)


def simulate(night: Night, found: Measured) -> Simulated:
    """Return the course and the bill of a night."""
    course, several = pace(night, found), night.buckets
    buckets = (
        replace(one, number=several * one.number, dollars=several * one.dollars)
        for one in _bucket(night, course, found)
    )
    return Simulated(course, [term for term in (*buckets, *_functions(night, course)) if term.number])


def total(terms: Sequence[Term], services: Sequence[str] = SERVICES) -> float:
    """Return the dollars of the terms of these services."""
    return math.fsum(term.dollars for term in terms if term.service in services)


def _bucket(night: Night, course: Pace, found: Measured) -> Iterator[Term]:
    """Yield the terms of one bucket but for the functions."""
    lists, changed, due = night.lists, night.changed_calls, night.due_calls
    yield Term(S3_LIST, "pages of the listing", lists, prices.of_lists(lists))
    yield Term(S3_CALLS, "calls on what changed", changed, prices.of_object_calls(changed, night.storage_class))
    yield Term(S3_CALLS, "calls on what is due", due, prices.of_object_calls(due, night.storage_class))
    if night.mode is Mode.MIXED:
        yield from _inventory(night, found)
    yield _priced("put", S3_INVENTORY, "PUT requests to spread it", night.pieces)
    yield Term(S3_INVENTORY, "GET requests of the spread rows", *_gets(night.pieces * course.hops))
    yield from _run_folder(night, course, found)
    if night.data_events:
        yield Term(CLOUDTRAIL, "data events", night.s3_calls, prices.of_data_events(night.s3_calls))
    yield _priced("ledger_reads", DYNAMODB, "read units", night.ledger_units * night.objects)


def _gets(number: int) -> tuple[int, float]:
    return number, prices.of_object_calls(number, "STANDARD")


def _inventory(night: Night, found: Measured) -> Iterator[Term]:
    listed = night.objects / night.inventory_days
    yield Term(S3_INVENTORY, "objects listed", listed, prices.of_inventory(listed))
    stored = INVENTORY_KEPT * night.objects * found.row_bytes / GB
    yield _priced("storage", S3_INVENTORY, STORED, stored / NIGHTS)


def _run_folder(night: Night, course: Pace, found: Measured) -> Iterator[Term]:
    written = night.objects * found.line_bytes / GB
    stored = written * night.kept_nights / NIGHTS
    files = PART_FILES * course.parts + HOP_FILES * night.ranges * course.hops
    if night.shared_files:
        yield _priced("efs_writes", EFS, "GB written", written)
        yield _priced("efs_reads", EFS, "GB read to compare", written)
        yield _priced("efs_storage", EFS, STORED, stored)
        return
    yield _priced("put", RUN_FOLDER, "PUT requests", files)
    read = PART_FILES * course.parts
    yield Term(RUN_FOLDER, "GET requests to compare", read, prices.of_object_calls(read, "STANDARD"))
    yield _priced("storage", RUN_FOLDER, STORED, stored)


def _functions(night: Night, course: Pace) -> Iterator[Term]:
    yield _priced("lambda_seconds", LAMBDA, "GB-seconds", course.billed * night.memory / MB_IN_GB)
    yield _priced("lambda_requests", LAMBDA, "invocations", course.invocations)
    yield _priced("transitions", STEP_FUNCTIONS, "state transitions", course.transitions)


def _priced(price: str, service: str, what: str, number: float) -> Term:
    return Term(service, what, number, prices.prices()[price].of(number))
