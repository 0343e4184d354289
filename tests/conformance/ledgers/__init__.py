"""The conformance suite of ledgers: each check takes an opener of an empty ledger. It fails with AssertionError.

A check opens the ledger itself, once or more: give each check a ledger of its own. It needs no test framework.
"""

from __future__ import annotations

from typing import Final

from . import digests, history, leases, notifications, seals
from .base import CHECKS as EVERY
from .base import LedgerCheck, OpenLedger

__all__ = [
    "CHECKS",
    "SLOW_CHECKS",
    "LedgerCheck",
    "OpenLedger",
    "digests",
    "history",
    "leases",
    "notifications",
    "seals",
]

SLOW_CHECKS: Final[tuple[LedgerCheck, ...]] = (history.many_subjects_are_read_in_pages_and_each_comes_once,)
"""Checks that write hundreds of keys."""
CHECKS: Final[tuple[LedgerCheck, ...]] = tuple(one for one in EVERY if one not in SLOW_CHECKS)
