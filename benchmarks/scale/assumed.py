"""The choices that the tables of docs/scale.md compare."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from benchmarks.scale import bill
from benchmarks.scale.bill import total
from benchmarks.scale.find import Simulated
from benchmarks.scale.mode import Mode
from benchmarks.scale.night import Night

USUAL_OBJECTS: Final = 10**8
BILLION: Final = 10**9
ACL_DAYS: Final = 8.0
HEAD_DAYS: Final = 31.0
"""Limits of `keep` in the page's incremental runs: a seventh of the ACLs and a thirtieth of the HEADs are due each
night."""
SMALLER: Final = 1024
"""MB at which a function that lists a range waits for its CPU about as long as for the listing."""
FEW_NIGHTS: Final = 14


def _keep_heads(night: Night) -> Night:
    """What a rule reads may be in HEAD alone, and not in the Inventory: the last run then has it."""
    return replace(night, head_days=HEAD_DAYS) if night.mode is Mode.MIXED else night


Change = Callable[[Night], Night]
OPTIONS: Final[tuple[tuple[str, Change], ...]] = (
    ("CloudTrail data events are on", lambda one: replace(one, data_events=True)),
    ("the run folder is on EFS", lambda one: replace(one, shared_files=True)),
    ("the storage class is STANDARD_IA", lambda one: replace(one, storage_class="STANDARD_IA")),
    ("the storage class is GLACIER_IR", lambda one: replace(one, storage_class="GLACIER_IR")),
    ("5 % of the objects change, not 1 %", lambda one: replace(one, changed=0.05)),
    ("the function has 512 MB", lambda one: replace(one, memory=512)),
    (f"run folders are kept {FEW_NIGHTS} nights", lambda one: replace(one, kept_nights=FEW_NIGHTS)),
    ("level `exposure`: no HEAD", lambda one: replace(one, head=False)),
    (f"HEADs are kept from the last run, `keep` head={HEAD_DAYS:.0f}d", _keep_heads),
    ("level `fixity`", lambda one: replace(one, ledger_units=bill.LEDGER_UNITS)),
    ("events of changed objects come through a queue", lambda one: replace(one, object_events=True)),
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


def on_a_machine(objects: int = BILLION) -> Night:
    """Return the mixed night of one process on a machine."""
    return replace(usual(Mode.MIXED, objects), machine=True)


@dataclass(frozen=True, slots=True)
class Own:
    """The dollars of a night apart from the calls on objects. requests: S3's, with S3 Inventory. functions: Lambda and
    Step Functions. stored: a night's share of what is stored.
    """

    requests: float
    functions: float
    stored: float

    @property
    def running(self) -> float:
        """Without what is stored."""
        return self.requests + self.functions


def own(one: Simulated) -> Own:
    """Return the dollars of a night apart from the calls on objects."""
    terms = [term for term in one.terms if term.service != bill.S3_CALLS]
    stored = math.fsum(term.dollars for term in terms if term.what == bill.STORED)
    functions = total(terms, (bill.LAMBDA, bill.STEP_FUNCTIONS))
    return Own(total(terms) - functions - stored, functions, stored)


def cheaper(objects: int = BILLION) -> Iterator[tuple[str, Night]]:
    """Yield a mixed night on which nothing changed, with its settings in words: on a machine, with one more setting
    each time; and over ranges of functions.
    """
    night = replace(on_a_machine(objects), changed=0.0)
    yield "a machine, and the defaults", night
    night = replace(night, kept_nights=FEW_NIGHTS)
    yield f"and `reportDays` {FEW_NIGHTS}", night
    yield "and an Inventory each week, not each day", replace(night, inventory_days=7.0)
    ranges = replace(night, machine=False)
    yield f"ranges of functions, `reportDays` {FEW_NIGHTS}", ranges
    yield f"and `auditMemory` {SMALLER}", replace(ranges, memory=SMALLER)
