"""The possible outcomes of verifying one object."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class VerifyOutcome(StrEnum):
    """The outcome of verifying one object. The object is in the listing, or only the ledger knows it."""

    MATCH = "match"
    MISMATCH = "mismatch"
    CHANGED = "changed"
    MISSING = "missing"
    LOST = "lost"
    DELETED = "deleted"
    RETIRED = "retired"
    ACKNOWLEDGED = "acknowledged"
    NEW = "new"
    UNREADABLE = "unreadable"
    LEDGER_FAULT = "ledger_fault"
    ARCHIVED = "archived"
    IN_FLIGHT = "in_flight"
    NOT_DUE = "not_due"
    LEFT_FOR_COST = "left_for_cost"


FINDINGS: Final = (
    VerifyOutcome.MISMATCH,
    VerifyOutcome.MISSING,
    VerifyOutcome.LOST,
    VerifyOutcome.CHANGED,
    VerifyOutcome.DELETED,
    VerifyOutcome.NEW,
)
"""Outcomes that `--fail-on` may name. An object with any other outcome is as expected, or was not verified."""

FAIL_ON: Final = (VerifyOutcome.MISMATCH, VerifyOutcome.MISSING, VerifyOutcome.LOST)
"""Outcomes that make `auditor verify` end with exit code 3, if no setting says otherwise."""
