"""An entry of [[exceptions]] in auditor.toml, and the state in which a run found it."""

from __future__ import annotations

import hashlib
import json
from enum import StrEnum
from typing import Annotated, Final

from msgspec import Struct

from auditor.model.access import Verdict
from auditor.model.target import BUCKET_NAME
from auditor.model.toml_forms import Day, Owner, Text, form

OPEN: Final = (Verdict.EXPOSED, Verdict.SHARED, Verdict.MASKED)
"""The verdicts that an exception may cover. Nobody gets in at private and dormant, which need no exception, and
unknown is a hole."""
_ID: Final = "[A-Za-z0-9][A-Za-z0-9._-]{0,63}"


class ExceptionEntry(Struct, frozen=True, forbid_unknown_fields=True):
    """An entry by which the owner of a bucket accepts findings of a rule, objects with a verdict, or holes. The
    accepted matches stay in the counts and in the report, but do not raise the exit code.

    The members that are not None are conditions, and an entry matches whatever meets all of them. An entry with an
    action or a code accepts holes: undecided objects or, if it also has a rule, undecided rules.
    """

    reason: Annotated[Text, form("say why it is accepted")]
    owner: Owner
    until: Day
    prefix: Text | None = None
    """Prefix of the keys that the entry covers."""
    rule: Text | None = None
    """ID of a rule."""
    action: Text | None = None
    """The API operation that failed, for a hole."""
    code: Text | None = None
    """The error code of the failure, for a hole."""
    verdict: Annotated[Verdict, form(f"use {', '.join(OPEN)}", quote=True)] | None = None
    pattern: Text | None = None
    """Pattern of the keys that the entry covers: `*` stands for any characters."""
    bucket: Annotated[str, form("write its name, without s3:// and prefix", BUCKET_NAME.pattern)] | None = None
    """The bucket in which the entry holds; None for each audited bucket."""
    grantee: Text | None = None
    """Grantee of the findings: a canonical ID, or the URI of a group."""
    audience: Text | None = None
    """The widest audience that the entry covers, in the form of Audience.text."""
    id: Annotated[str, form("write at most 64 letters, digits, '.', '_' and '-', a letter or digit first", _ID)] = ""
    """The ID given in auditor.toml; "" if none is given. The property `name` then makes one."""

    @property
    def hole(self) -> bool:
        """True if the entry accepts holes."""
        return self.action is not None or self.code is not None

    @property
    def name(self) -> str:
        """The entry's ID: the given one, or else 12 hex digits computed from the conditions of the entry. A new reason,
        owner or date does not change the ID.
        """
        if self.id:
            return self.id
        covered = [self.bucket, self.rule, self.verdict, self.prefix, self.pattern, self.grantee, self.audience]
        text = json.dumps([*covered, self.action, self.code, self.hole])
        return hashlib.sha256(text.encode("ascii")).hexdigest()[:12]

    def holds_on(self, day: str) -> bool:
        """True if the entry has not expired on this day, YYYY-MM-DD."""
        return day <= self.until


class ExceptionState(StrEnum):
    """The state of an exception entry after a run."""

    ACTIVE = "active"
    """The entry covered something in the run."""
    EXPIRED = "expired"
    """The entry's last day is over, so whatever the entry matches counts again."""
    UNUSED = "unused"
    """The entry matches nothing in the run."""
    SHADOWED = "shadowed"
    """The entry matches something, but earlier entries cover all of it."""


class ExceptionUse(Struct, frozen=True):
    """An exception entry in the summary of a run. matched: number of objects whose verdict the entry covers, of
    findings, and of holes; for an expired entry, the number that it would cover. A finding is not counted if an entry
    covers the verdict of its object.
    """

    id: str
    rule: str | None
    verdict: Verdict | None
    prefix: str | None
    owner: str
    reason: str
    until: str
    state: ExceptionState
    matched: int = 0
    pattern: str | None = None
    grantee: str | None = None
    audience: str | None = None
    hole: bool = False
    """True if the entry accepts holes."""


class Excepted(Struct, frozen=True):
    """The names of the entries that cover one object, or the bucket.

    verdict: the entry that covers the verdict; None if none does. findings: for each finding, in order, the entry that
    covers it, or None. hole: the entry that accepts that the object is undecided, or None. used: each entry that covers
    something, once for each thing that it covers. shadowed: each entry that would cover something if no earlier entry
    did. expired: each entry that would cover something if it had not expired.
    """

    verdict: str | None = None
    findings: tuple[str | None, ...] = ()
    hole: str | None = None
    used: tuple[str, ...] = ()
    shadowed: tuple[str, ...] = ()
    expired: tuple[str, ...] = ()
