"""An entry of [[exceptions]] or [[accept_undecided]] in auditor.toml, and the state in which a run found it."""

from __future__ import annotations

import hashlib
import json
from enum import StrEnum

from auditor.model.access import Verdict
from auditor.model.record import record


@record()
class ExceptionEntry:
    """An entry by which the owner of a bucket accepts findings of a rule, objects with a verdict, or holes. Its matches
    stay in the counts and in the report, and do not raise the exit code.

    An entry matches whatever has every one of its members that is not None. With an action or a code it accepts holes:
    undecided objects; with a rule too, undecided rules. So does each entry of [[accept_undecided]].
    """

    reason: str
    prefix: str | None = None
    """Prefix of the keys that it covers."""
    rule: str | None = None
    """ID of a rule."""
    action: str | None = None
    """The API operation that failed, for a hole."""
    code: str | None = None
    """The error code of the failure, for a hole."""
    verdict: Verdict | None = None
    pattern: str | None = None
    """Form of the keys that it covers: `*` stands for any characters."""
    bucket: str | None = None
    """The bucket that it is for; None for each audited bucket."""
    grantee: str | None = None
    """Grantee of the findings: a canonical ID, or the URI of a group."""
    audience: str | None = None
    """The widest audience that it covers, in the form of Audience.text."""
    owner: str | None = None
    """The person or team that answers for it; None in the old form of [[accept_undecided]] only."""
    until: str | None = None
    """The last day, in UTC, on which it holds: YYYY-MM-DD; None in the old form of [[accept_undecided]] only."""
    id: str = ""
    """ID given in auditor.toml; "" if none is given: see `name`."""
    hole: bool = False
    """True if it accepts holes."""

    @property
    def name(self) -> str:
        """The ID: the given one, else 12 hex digits of what it covers. Another reason, owner or date keep the ID."""
        if self.id:
            return self.id
        covered = [self.bucket, self.rule, self.verdict, self.prefix, self.pattern, self.grantee, self.audience]
        text = json.dumps([*covered, self.action, self.code, self.hole])
        return hashlib.sha256(text.encode("ascii")).hexdigest()[:12]

    def holds_on(self, day: str) -> bool:
        """True if the entry has not expired on this day, YYYY-MM-DD."""
        return self.until is None or day <= self.until


class ExceptionState(StrEnum):
    """The state in which a run found an entry."""

    ACTIVE = "active"
    """It covered something."""
    EXPIRED = "expired"
    """Its last day is over: whatever it matches counts again."""
    UNUSED = "unused"
    """Nothing in the run matches it."""
    SHADOWED = "shadowed"
    """Earlier entries cover everything that it matches."""


@record()
class ExceptionUse:
    """An entry in the summary of a run. matched: number of objects whose verdict it covers, of findings, and of
    holes; for an expired entry, of those that it would cover. Findings that a verdict's entry covers are not counted.
    """

    id: str
    rule: str | None
    verdict: Verdict | None
    prefix: str | None
    owner: str | None
    reason: str
    until: str | None
    state: ExceptionState
    matched: int = 0
    pattern: str | None = None
    grantee: str | None = None
    audience: str | None = None
    hole: bool = False
    """True if the entry accepts holes."""


@record()
class Excepted:
    """The entries that cover one object, or the bucket, by their names.

    verdict: the entry that covers the verdict; None if none does. findings: for each finding, in order, the entry that
    covers it, or None. hole: the entry that accepts that the object is undecided, or None. used: each entry that
    covers something, once for each thing that it covers. shadowed: each other entry that would cover it. expired: each
    entry that would cover it if it had not expired.
    """

    verdict: str | None = None
    findings: tuple[str | None, ...] = ()
    hole: str | None = None
    used: tuple[str, ...] = ()
    shadowed: tuple[str, ...] = ()
    expired: tuple[str, ...] = ()
