"""The types of three kinds of JSON lines in a run folder's files: a listed object, a finding, an undecided object."""

from __future__ import annotations

from typing import Annotated, Any

from auditor.model.finding import Severity, Verdict
from auditor.model.json_text import as_object, typed
from auditor.model.object import Acl, Head, Outcome, Skipped, Unread
from auditor.model.record import record


def _acl(value: Any) -> Acl | Unread | Skipped:
    return _missing(value) or typed(Acl, value)


def _head(value: Any) -> Head | Unread | Skipped:
    """Read the `head` of an object's line. If the line has only names of metadata, the Head's metadata is empty."""
    if missing := _missing(value):
        return missing
    return typed(Head, {**value, "metadata": value["metadata"] if isinstance(value.get("metadata"), dict) else {}})


def _missing(value: Any) -> Unread | Skipped | None:
    if "unread" in as_object(value):
        return typed(Unread, value["unread"])
    return Skipped(value["skipped"]) if isinstance(value.get("skipped"), str) else None


@record()
class ObjectLine:
    """One JSON line of the `objects` files in a run folder: the facts and results of one listed object version."""

    key: str
    version_id: str | None
    etag: str
    """The ETag without quotes."""
    size: int
    """Size in bytes."""
    last_modified: str
    """S3's LastModified: ISO 8601 in UTC, to the second."""
    storage_class: str
    owner: str | None
    """Canonical ID of the owner; None if it is unknown."""
    acl: Annotated[Acl | Unread | Skipped, _acl]
    head: Annotated[Head | Unread | Skipped, _head]
    """The metadata of this Head is empty unless the run keeps the values."""
    outcome: Outcome
    changed: bool
    """True if HEAD's ETag differs from the listing's."""
    verdict: Verdict | None
    """The verdict; None if the object was deleted after it was listed."""
    rules: tuple[str, ...]
    """IDs of the rules that have a finding on the object."""
    hashed: bool | None
    """True if the ledger has the object's digests, False if not; None if the run has no ledger."""


@record()
class FindingLine:
    """One JSON line of the `findings` files in a run folder: one finding. key, verdict: the object's; both are None for
    a finding on the bucket.
    """

    fingerprint: str
    rule: str
    severity: Severity
    key: str | None
    version_id: str | None
    grantee: str | None
    permission: str | None
    message: str
    verdict: Verdict | None = None


@record()
class UndecidedLine:
    """One JSON line of the `undecided` files in a run folder: an object with facts that could not be read. unread:
    these facts. rules: IDs of the rules that could not be judged without them.
    """

    key: str
    version_id: str | None
    unread: tuple[Unread, ...]
    rules: tuple[str, ...]
