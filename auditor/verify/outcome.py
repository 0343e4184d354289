"""An object with the outcome of its verification, and its line in the combined report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct, field

from auditor.model.digest import VerifyOutcome
from auditor.text import visible

SIGNS: Final[Mapping[VerifyOutcome, str]] = {
    VerifyOutcome.MATCH: "=",
    VerifyOutcome.MISMATCH: "*",
    VerifyOutcome.CHANGED: "~",
    VerifyOutcome.MISSING: "-",
    VerifyOutcome.LOST: "%",
    VerifyOutcome.DELETED: "x",
    VerifyOutcome.RETIRED: "r",
    VerifyOutcome.ACKNOWLEDGED: "k",
    VerifyOutcome.NEW: "+",
    VerifyOutcome.UNREADABLE: "!",
    VerifyOutcome.LEDGER_FAULT: "?",
    VerifyOutcome.ARCHIVED: "a",
    VerifyOutcome.IN_FLIGHT: ">",
    VerifyOutcome.NOT_DUE: ".",
    VerifyOutcome.LEFT_FOR_COST: "$",
}
"""First character of a line in the combined report, by outcome. If rclone has the same outcome, the character is that
of `rclone check --combined`."""
LEFT: Final = (VerifyOutcome.ARCHIVED, VerifyOutcome.LEFT_FOR_COST, VerifyOutcome.LEDGER_FAULT)
"""Outcomes of objects that were due and not read. UNREADABLE is another such outcome."""


class Verified(Struct, frozen=True, kw_only=True):
    """One object version with the outcome of its verification."""

    key: str
    outcome: VerifyOutcome
    listed: bool = True
    """False if the ledger has the object and the listing lacks it."""
    version_id: str | None = None
    """ID of the version; None if it is unknown."""
    etag: str | None = None
    size: int | None = None
    detail: Mapping[str, str] = field(default_factory=dict)
    """Short texts by name, such as `algorithm`, `recorded`, `found`, `code`, `storage_class`."""

    @property
    def unread(self) -> str | None:
        """Why the object was due and not read: `archived`, `left_for_cost`, `ledger_fault`, or an error code; None if
        the object was read or not due.
        """
        if self.outcome is VerifyOutcome.UNREADABLE:
            return self.detail["code"]
        return self.outcome.value if self.outcome in LEFT else None

    def line(self) -> str:
        """Return the object's line in the combined report: the outcome's sign, a space, the key, and a tab and the
        version ID if the object has one.
        """
        version = f"\t{visible(self.version_id)}" if self.version_id is not None else ""
        return f"{SIGNS[self.outcome]} {visible(self.key)}{version}"

    def document(self) -> dict[str, object]:
        """Return the object and its outcome as a JSON object."""
        return {
            "outcome": self.outcome.value,
            "key": self.key,
            "version_id": self.version_id,
            "etag": self.etag,
            "size": self.size,
            "detail": dict(self.detail),
        }
