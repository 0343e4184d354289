"""The outcomes of a verification, and an object's line in the reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from typing import Final

from auditor.model.record import record
from auditor.text import visible


class VerifyOutcome(StrEnum):
    """Each listed object has one outcome, and so has each object that only the ledger has."""

    MATCH = "match"
    MISMATCH = "mismatch"
    CHANGED = "changed"
    MISSING = "missing"
    DELETED = "deleted"
    NEW = "new"
    UNREADABLE = "unreadable"
    ARCHIVED = "archived"
    IN_FLIGHT = "in_flight"
    NOT_DUE = "not_due"
    LEFT_FOR_COST = "left_for_cost"


SIGNS: Final[Mapping[VerifyOutcome, str]] = {
    VerifyOutcome.MATCH: "=",
    VerifyOutcome.MISMATCH: "*",
    VerifyOutcome.CHANGED: "~",
    VerifyOutcome.MISSING: "-",
    VerifyOutcome.DELETED: "x",
    VerifyOutcome.NEW: "+",
    VerifyOutcome.UNREADABLE: "!",
    VerifyOutcome.ARCHIVED: "a",
    VerifyOutcome.IN_FLIGHT: ">",
    VerifyOutcome.NOT_DUE: ".",
    VerifyOutcome.LEFT_FOR_COST: "$",
}
"""First character of a line of the combined report; as in `rclone check --combined` where that has the same."""

FINDINGS: Final = (VerifyOutcome.MISMATCH, VerifyOutcome.MISSING)
"""Outcomes that make the exit code 3."""


@record(kw_only=True)
class Verified:
    """One object version with its outcome.

    listed: False where only the ledger has it. version_id: None where it is not known. detail: short texts by
    name, such as `algorithm`, `recorded`, `found`, `code`, `storage_class`.
    """

    key: str
    outcome: VerifyOutcome
    listed: bool = True
    version_id: str | None = None
    etag: str | None = None
    size: int | None = None
    detail: Mapping[str, str] = field(default_factory=dict, hash=False)

    def line(self) -> str:
        """`= key`, then a tab and the version where there is one. Unprintable characters are escaped."""
        version = f"\t{visible(self.version_id)}" if self.version_id is not None else ""
        return f"{SIGNS[self.outcome]} {visible(self.key)}{version}"

    def document(self) -> dict[str, object]:
        """The line as a JSON object."""
        return {
            "outcome": self.outcome.value,
            "key": self.key,
            "version_id": self.version_id,
            "etag": self.etag,
            "size": self.size,
            "detail": dict(self.detail),
        }
