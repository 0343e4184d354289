"""The summary of a run, as summary.json holds it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

from auditor.model.finding import RuleUndecided, Severity, Verdict
from auditor.model.json_text import JsonError, plain, typed
from auditor.model.target import Target


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """Numbers of objects. listed = audited + vanished + undecided; delete markers are outside of it."""

    listed: int
    audited: int
    vanished: int
    undecided: int
    delete_markers: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CallCounts:
    """Requests that were sent, retries included."""

    list: int
    head: int
    acl: int
    retried: int
    throttled: int


@dataclass(frozen=True, slots=True)
class AcceptedHoles:
    """Undecided objects and undecided rules that the configuration accepts; they stay counted as undecided."""

    undecided: int = 0
    rules: int = 0


@dataclass(frozen=True, slots=True)
class Amount:
    """A number of objects, and their bytes together."""

    objects: int = 0
    bytes: int = 0


HASHING: Final = ("known", "hashed_now", "queued", "unhashable", "pending")
"""The states of an object's digests; each audited or undecided object has exactly one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HashingSummary:
    """Numbers of objects by the state of their digests.

    left_for_cost: pending objects whose storage class charges for a read, by class. routed: unhashable objects that
    are left to S3 Batch Operations.
    """

    algorithms: tuple[str, ...]
    known: int
    hashed_now: int
    queued: int
    unhashable: int
    pending: int
    left_for_cost: Mapping[str, Amount] = field(default_factory=dict)
    routed: Amount = Amount()

    @property
    def counts(self) -> dict[str, int]:
        """Each state of HASHING and its number."""
        return {name: getattr(self, name) for name in HASHING}


@dataclass(frozen=True, slots=True)
class UnreadCount:
    """The number of objects that lack a fact because this API operation failed with this code."""

    action: str
    code: str
    count: int


@dataclass(frozen=True, slots=True)
class Resume:
    """The point where an incomplete run continues. start_after: the last key with an outcome, or None."""

    run: str
    start_after: str | None
    reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """All counts of a run.

    run: its ID. out: URI of the run folder. complete: the listing reached its end. rules: findings by rule. rules and
    unread: the largest number first. hashing: None without a ledger. resume: None where the run is complete.
    """

    run: str
    out: str
    target: Target
    engine: str
    complete: bool
    coverage: Coverage
    verdicts: Mapping[str, int]
    findings: Mapping[str, int]
    rules: Mapping[str, int] = field(default_factory=dict)
    rules_undecided: tuple[RuleUndecided, ...]
    unread: tuple[UnreadCount, ...] = ()
    accepted: AcceptedHoles = AcceptedHoles()
    hashing: HashingSummary | None
    calls: CallCounts
    not_looked_at: tuple[str, ...]
    seconds: float
    resume: Resume | None

    def to_dict(self) -> dict[str, Any]:
        """The value of summary.json."""
        return dict(plain(self))

    @classmethod
    def from_dict(cls, value: object) -> Self:
        """Raises JsonError for a value that is no summary; ignores the members of later versions."""
        found = typed(cls, value)
        for name, counts, words in (("verdicts", found.verdicts, Verdict), ("findings", found.findings, Severity)):
            if missing := [word.value for word in words if word.value not in counts]:
                raise JsonError("is missing", f"{name}.{missing[0]}")
        return found
