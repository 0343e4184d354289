"""The summary of a run, the content of its summary.json, with the changes since the last complete run."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, Self

from msgspec import Struct, field

from auditor.model.access import Verdict
from auditor.model.exception import ExceptionUse
from auditor.model.finding import RuleUndecided, Severity
from auditor.model.json_codec import (
    JsonError,
    as_object,
    document,
    member_names,
    parse_document,
    plain,
    typed,
    without_format,
)
from auditor.model.target import Target


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


NO_INVENTORY: Final = "an S3 Inventory of the bucket"
"""The begin of the phrase in not_looked_at of a run that was to use an Inventory, and found no usable one."""


class Coverage(Struct, frozen=True, kw_only=True):
    """The number of objects that a run listed, and their numbers by outcome: listed = audited + vanished + undecided.
    Delete markers are no objects: they have a count of their own.
    """

    listed: int
    audited: int
    vanished: int
    undecided: int
    delete_markers: int


class CallCounts(Struct, frozen=True, kw_only=True):
    """Numbers of requests that were sent, including retries."""

    list: int
    head: int
    acl: int
    retried: int
    throttled: int


class AcceptedHoles(Struct, frozen=True):
    """The number of undecided objects, of undecided rules, and of objects that could not be hashed, that auditor.toml
    accepts. The summary's other counts include the accepted ones.
    """

    undecided: int = 0
    rules: int = 0
    hashing: Mapping[str, int] = field(default_factory=dict)
    """By code: the number of objects that could not be hashed, and that auditor.toml accepts."""


class ExceptedCounts(Struct, frozen=True):
    """The number of objects by verdict, of findings by severity, and of undecided objects that an exception of
    auditor.toml covers. The summary's other counts include them.
    """

    verdicts: Mapping[str, int] = field(default_factory=dict)
    findings: Mapping[str, int] = field(default_factory=dict)
    undecided: int = 0


class Amount(Struct, frozen=True):
    """A number of objects, and the sum of their sizes in bytes."""

    objects: int = 0
    bytes: int = 0


class KeptFact(Struct, frozen=True):
    """The number of objects of which a fact was not read in this run, by its source: an earlier run, or an S3
    Inventory. oldest: when the oldest of these facts was read, in ISO 8601 in UTC; None if there is none.
    """

    run: int = 0
    inventory: int = 0
    oldest: str | None = None


class KeptFacts(Struct, frozen=True):
    """The facts of objects that a run took from an earlier source."""

    acl: KeptFact = KeptFact()
    head: KeptFact = KeptFact()


HASHING: Final = ("known", "hashed_now", "queued", "unhashable", "pending")
"""The states of an object's digests. Each audited or undecided object is in exactly one of them."""


class HashingSummary(Struct, frozen=True, kw_only=True):
    """Numbers of objects by the state of their digests. left_for_cost: by storage class, the pending objects that were
    not read because S3 charges extra for reading that class. routed: the unhashable objects that are left to S3 Batch
    Operations. failed: by code (S3's error code, `SSE-C`, `ChecksumMismatch` ..), the pending objects that this run
    could not hash.
    """

    algorithms: tuple[str, ...]
    known: int
    hashed_now: int
    queued: int
    unhashable: int
    pending: int
    left_for_cost: Mapping[str, Amount] = field(default_factory=dict)
    routed: Amount = Amount()
    failed: Mapping[str, int] = field(default_factory=dict)

    @property
    def counts(self) -> dict[str, int]:
        """Return the number of objects in each state: known, hashed_now, queued, unhashable, pending."""
        return {name: getattr(self, name) for name in HASHING}


class UnreadCount(Struct, frozen=True):
    """The number of objects that lack a fact because the API operation `action` failed with the error `code`."""

    action: str
    code: str
    count: int


class Resume(Struct, frozen=True):
    """The point from which `--resume` continues an incomplete run. run: the run's ID. start_after: the last key that
    the run finished; None if it finished none. reason: why the run stopped; None if unknown.
    """

    run: str
    start_after: str | None
    reason: str | None


class Summary(Struct, frozen=True, kw_only=True):
    """The whole content of a run's summary.json."""

    run: str
    """The run's ID."""
    out: str
    """URI of the run folder."""
    target: Target
    engine: str
    complete: bool
    """True if the listing reached its end."""
    nothing_listed: bool = False
    """True if nothing is listed under the prefix that the target names, and the setting allow_empty does not allow it:
    a hole."""
    coverage: Coverage
    verdicts: Mapping[str, int]
    """Number of objects by verdict."""
    audiences: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Number of objects by verdict and by audience, in the form of Audience.text. An object counts for each audience
    that gets in; at most 100 audiences of a verdict are named, the objects of the rest count as "others".
    """
    trust_unused: tuple[str, ...] = ()
    """The entries of `trusted` that trusted nothing in this run."""
    findings: Mapping[str, int]
    """Number of findings by severity."""
    rules: Mapping[str, int] = field(default_factory=dict)
    """Number of findings by the rule's ID, the largest number first."""
    rules_undecided: tuple[RuleUndecided, ...]
    unread: tuple[UnreadCount, ...] = ()
    """Numbers of objects that lack a fact, by API operation and error code, the largest number first."""
    accepted: AcceptedHoles = AcceptedHoles()
    changes: Changes = field(default_factory=Changes)
    """The changes since the last complete run of the target."""
    excepted: ExceptedCounts = ExceptedCounts()
    exceptions: tuple[ExceptionUse, ...] = ()
    """The entries of auditor.toml that are for this bucket, with their states, in their order."""
    hashing: HashingSummary | None
    """Counts of the objects' digests; None if the run has no ledger."""
    healed: int = 0
    """Number of damaged rows of the ledger that the run has written anew, because the keys' histories had them."""
    calls: CallCounts
    kept: KeptFacts = KeptFacts()
    """The facts that this run did not read, because an earlier one had read them (`keep`)."""
    not_looked_at: tuple[str, ...]
    """The things that the run did not look at, in words. The verdict `private` says nothing about these things."""
    seconds: float
    resume: Resume | None
    """The point from which the run can be resumed; None if the run is complete."""
    sealed: Mapping[str, str] = field(default_factory=dict)
    """SHA-256 of the run's seal, by the name of its file, seal.json; empty until the summary is written, last of all
    files."""

    def to_dict(self) -> dict[str, Any]:
        """Return the summary as the JSON value of summary.json."""
        return document(self)

    @classmethod
    def from_dict(cls, value: object) -> Self:
        """Make a summary from the JSON value of a summary.json; unknown members are ignored. Raises JsonError."""
        return cls._of(without_format(as_object(value)))

    @classmethod
    def from_json(cls, data: bytes) -> Self:
        """Make a summary from the bytes of a summary.json, as from_dict() does."""
        return cls._of(parse_document(data))

    @classmethod
    def _of(cls, members: Mapping[str, Any]) -> Self:
        if missing := sorted(member_names(cls) - members.keys()):
            raise JsonError("is missing", missing[0])
        found = typed(cls, members)
        for name, counts, words in (("verdicts", found.verdicts, Verdict), ("findings", found.findings, Severity)):
            if missing := [word.value for word in words if word.value not in counts]:
                raise JsonError("is missing", f"{name}.{missing[0]}")
        return found
