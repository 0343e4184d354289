"""What can become of an object when it is verified, and the line that a report has of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from typing import Final

from auditor.model.record import record
from auditor.text import visible


class VerifyOutcome(StrEnum):
    """Of each object one. Objects that the listing has, and of those that only the ledger has."""

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
"""How a line of the combined report begins; those of `rclone check --combined` where it has the same."""

FINDINGS: Final = (VerifyOutcome.MISMATCH, VerifyOutcome.MISSING)
"""They make the exit code 3."""


@record(kw_only=True)
class Verified:
    """One object, or a version of it, and what became of it.

    listed: the listing has it, not the ledger alone. version_id: None where none is known. detail: short texts by
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
        """`= key`, and the version behind a tab where there is one; what does not print as itself is escaped."""
        version = f"\t{visible(self.version_id)}" if self.version_id is not None else ""
        return f"{SIGNS[self.outcome]} {visible(self.key)}{version}"

    def document(self) -> dict[str, object]:
        """The same for a machine."""
        return {
            "outcome": self.outcome.value,
            "key": self.key,
            "version_id": self.version_id,
            "etag": self.etag,
            "size": self.size,
            "detail": dict(self.detail),
        }
