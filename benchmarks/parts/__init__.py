"""The parts of the benchmarks by name, in the order of the page. A new part is a module like these, and a line here."""

from __future__ import annotations

from typing import Final

from benchmarks.parts import (
    cold,
    compiled,
    engines,
    hashing,
    jobs,
    known,
    memory,
    nights,
    packing,
    shares,
    targets,
    throttled,
    transfers,
    verifying,
)
from benchmarks.parts.interface import Part

PARTS: Final[dict[str, Part]] = {
    "engines": engines.PART,
    "compiled": compiled.PART,
    "shares": shares.PART,
    "hashing": hashing.PART,
    "packing": packing.PART,
    "known": known.PART,
    "verifying": verifying.PART,
    "transfers": transfers.PART,
    "memory": memory.PART,
    "nights": nights.PART,
    "jobs": jobs.PART,
    "throttled": throttled.PART,
    "cold": cold.PART,
    "targets": targets.PART,
}
