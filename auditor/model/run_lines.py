"""The lines of a run folder: one for an object, for a finding, and for an object that stayed undecided."""

from __future__ import annotations

from typing import Annotated, Any

from auditor.model.finding import Severity, Verdict
from auditor.model.json_text import as_object, typed
from auditor.model.object import Acl, Head, Outcome, Skipped, Unread
from auditor.model.record import record


def _acl(value: Any) -> Acl | Unread | Skipped:
    return _missing(value) or typed(Acl, value)


def _head(value: Any) -> Head | Unread | Skipped:
    """A line keeps the names of user metadata, and their values where the configuration asks for them."""
    if missing := _missing(value):
        return missing
    return typed(Head, {**value, "metadata": value["metadata"] if isinstance(value.get("metadata"), dict) else {}})


def _missing(value: Any) -> Unread | Skipped | None:
    if "unread" in as_object(value):
        return typed(Unread, value["unread"])
    return Skipped(value["skipped"]) if isinstance(value.get("skipped"), str) else None


@record()
class ObjectLine:
    """One listed object version.

    etag: without quotes. size: bytes. last_modified: ISO 8601, UTC. owner: canonical ID; None where it is not known.
    head: its metadata is empty unless the run keeps the values. verdict: None for an object that vanished. rules: IDs
    of the rules with a finding. hashed: the ledger has its digests; None without a ledger.
    """

    key: str
    version_id: str | None
    etag: str
    size: int
    last_modified: str
    storage_class: str
    owner: str | None
    acl: Annotated[Acl | Unread | Skipped, _acl]
    head: Annotated[Head | Unread | Skipped, _head]
    outcome: Outcome
    changed: bool
    verdict: Verdict | None
    rules: tuple[str, ...]
    hashed: bool | None


@record()
class FindingLine:
    """One finding. key: None for a finding on the bucket. verdict: of the object; None for a finding on the bucket."""

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
    """One undecided object. unread: the facts that could not be read. rules: IDs of the rules that lacked a fact."""

    key: str
    version_id: str | None
    unread: tuple[Unread, ...]
    rules: tuple[str, ...]
