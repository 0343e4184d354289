"""The changes since the last complete run of a target, counted by their kind."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from msgspec import Struct, field

from auditor.model.json_text import plain


class ChangeKind(StrEnum):
    """The kind of a change between two runs, of a finding or of the verdict of an object."""

    NEW = "new"
    """The old run looked and did not have the finding; or the object was private or not listed, and is not private."""
    WORSENED = "worsened"
    """The verdict is wider than before; or the finding is on a setting that the last run saw closed (B08)."""
    IMPROVED = "improved"
    """The verdict is narrower than before, and still not private."""
    RESOLVED = "resolved"
    """The new run looked at the object (or the bucket) and does not have the finding; or the object is now private."""
    GONE = "gone"
    """The new run did not list the object, or found it deleted."""
    UNREAD = "unread"
    """The new run could not tell: a fact could not be read, or the listing ended before the object; or the object was
    dormant and is private now, which only an S3 Inventory tells apart."""
    DECIDED = "decided"
    """The old run could not tell, and the new one can: the finding or the verdict may be older. An object that is
    dormant now, and was not open, counts here too: its hidden grants may be of any age."""
    EXCEPTED = "excepted"
    """An exception covers it, and did not in the old run."""
    UNCOVERED = "uncovered"
    """An exception covered it in the old run, and none does now."""


class Cause(Struct, frozen=True):
    """A change of the bucket or of the configuration, and the number of objects whose verdict it moved."""

    change: str
    """The changed fact or setting, in words that are safe to print."""
    objects: int


class Changes(Struct, frozen=True, kw_only=True):
    """The changes since the last complete run of the target."""

    against: str | None = None
    """ID of that run; None if there is none to compare with."""
    why_not: str | None = None
    """Why nothing was compared, or not all; None if all was."""
    classes: Mapping[str, int] = field(default_factory=dict)
    """Number of changes by ChangeKind, of verdicts and findings together."""
    verdicts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Number of changed objects by verdict and ChangeKind: by the new verdict where the change adds something (new,
    worsened, decided, excepted, uncovered), by the old one where it takes something away (improved, resolved, gone,
    unread)."""
    findings: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Number of changed findings by severity and ChangeKind."""
    causes: tuple[Cause, ...] = ()
    """The changes of the bucket and of the configuration, each once. The change that moved most verdicts comes
    first."""

    def to_dict(self) -> dict[str, Any]:
        """Return the changes as the JSON value that a summary has."""
        return dict(plain(self))
