"""An object version: its listing entry, its ACL and HEAD, and the facts that could not be read.

A fact is `T | Unread | Skipped`: a value, or the reason why there is none. No empty value ever stands for "not known".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from auditor.model.record import record

ALL_USERS: Final = "http://acs.amazonaws.com/groups/global/AllUsers"
AUTHENTICATED_USERS: Final = "http://acs.amazonaws.com/groups/global/AuthenticatedUsers"
LOG_DELIVERY: Final = "http://acs.amazonaws.com/groups/s3/LogDelivery"
PUBLIC_GROUPS: Final = frozenset({ALL_USERS, AUTHENTICATED_USERS})
ANONYMOUS_OWNER: Final = "65a011a29cdf8ec533ec3d1ccaae921c"
"""Canonical ID of the owner of an object that was uploaded without credentials (acl-overview, S3 User Guide)."""


@dataclass(frozen=True, slots=True)
class Unread:
    """A fact that was asked for and could not be read.

    action: API operation (`GetObjectAcl`). code: S3's error code; the HTTP status where the answer has no body;
    `SSE-C`, `Malformed`, `Timeout`, `ConnectionError`, `MaxCalls` where there is a better word.
    """

    action: str
    code: str


@dataclass(frozen=True, slots=True)
class Skipped:
    """A fact that was not asked for, or does not exist there; reason: one phrase for the user."""

    reason: str


@record()
class ObjectRef:
    """One object version, or current object, as the listing names it.

    key: as S3 holds it, any unicode. version_id: None unless versions were listed; the null version is "null".
    etag: without quotes. size: bytes. last_modified: ISO 8601, UTC, seconds. storage_class: STANDARD where S3 says
    nothing. owner: canonical ID, None where the listing gives none. checksum_algorithms: as S3 writes them ("SHA256").
    restored: the listing says that a restored copy of an archived object can be read now.
    """

    key: str
    etag: str
    size: int
    last_modified: str
    version_id: str | None = None
    storage_class: str = "STANDARD"
    owner: str | None = None
    is_latest: bool = True
    checksum_algorithms: tuple[str, ...] = ()
    checksum_type: str | None = None
    restored: bool = False


@dataclass(frozen=True, slots=True)
class ObjectVersion:
    """One version of an object. version_id: None where it is not known. etag: without quotes. size: bytes."""

    key: str
    version_id: str | None
    etag: str
    size: int


@dataclass(frozen=True, slots=True)
class Ask:
    """The calls to make for each object. acl, head: None to ask for the fact, else the reason to leave it out.

    acl_for_owner: the ACL is asked all the same where the listing names no owner and a rule needs one.
    """

    acl: Skipped | None = None
    head: Skipped | None = None
    acl_for_owner: bool = False

    @property
    def calls(self) -> int:
        """Calls per object."""
        return (self.acl is None) + (self.head is None)


@record()
class Grant:
    """grantee: canonical ID, or a group's URI. permission: READ, READ_ACP, WRITE, WRITE_ACP or FULL_CONTROL."""

    grantee: str
    permission: str


@record(hashed=False)
class Acl:
    """An object's or a bucket's ACL, effective as S3 returns it. owner: canonical ID.

    It is looked up in several tables for each object that has it, so its hash is kept.
    """

    owner: str
    grants: tuple[Grant, ...]
    _hash: int | None = field(default=None, init=False, repr=False, compare=False)

    def __hash__(self) -> int:
        kept = self._hash
        if kept is None:
            kept = hash((self.owner, self.grants))
            object.__setattr__(self, "_hash", kept)
        return kept


@record()
class Head:
    """HeadObject's members that describe the object; None where S3 said nothing, which is not "no".

    Times are ISO 8601, UTC, seconds. metadata: names and values, in memory only: the run folder keeps names.
    """

    etag: str
    content_length: int
    last_modified: str | None = None
    content_type: str | None = None
    content_encoding: str | None = None
    content_disposition: str | None = None
    content_language: str | None = None
    cache_control: str | None = None
    expires: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    missing_meta: int | None = None
    version_id: str | None = None
    storage_class: str | None = None
    server_side_encryption: str | None = None
    sse_kms_key_id: str | None = None
    bucket_key_enabled: bool | None = None
    sse_customer_algorithm: str | None = None
    checksum_type: str | None = None
    checksum_crc32: str | None = None
    checksum_crc32c: str | None = None
    checksum_crc64nvme: str | None = None
    checksum_sha1: str | None = None
    checksum_sha256: str | None = None
    website_redirect_location: str | None = None
    replication_status: str | None = None
    parts_count: int | None = None
    tag_count: int | None = None
    object_lock_mode: str | None = None
    object_lock_retain_until_date: str | None = None
    object_lock_legal_hold_status: str | None = None
    restore: str | None = None
    archive_status: str | None = None
    expiration: str | None = None


class Outcome(StrEnum):
    """What became of a listed object: its facts were read, it was gone, or something could not be read."""

    AUDITED = "audited"
    VANISHED = "vanished"
    UNDECIDED = "undecided"


@record(kw_only=True)
class DigestSources:
    """Digests of one object version, each algorithm ("sha256") to lower-case hex, by whose word they are.

    stored: S3's own, of the whole object. recorded: the ledger's. read: of the bytes, where this run has read them and
    they are not what was stored or recorded.
    """

    stored: Mapping[str, str] = field(default_factory=dict)
    recorded: Mapping[str, str] = field(default_factory=dict)
    read: Mapping[str, str] = field(default_factory=dict)


NO_LEDGER: Final = Skipped("no ledger was given")


@record()
class Evidence:
    """All that gather learnt of one object, and fixity of its digests.

    changed: HEAD's ETag differs from the listing's; `ref` then has HEAD's values.
    """

    ref: ObjectRef
    acl: Acl | Unread | Skipped
    head: Head | Unread | Skipped
    vanished: bool = False
    changed: bool = False
    digests: DigestSources | Skipped = NO_LEDGER

    @property
    def owner(self) -> str | Unread | Skipped:
        """Canonical ID of the object's owner: by its ACL where that was read, else by the listing (FetchOwner)."""
        if isinstance(self.acl, Acl):
            return self.acl.owner
        return self.acl if self.ref.owner is None else self.ref.owner

    @property
    def unread(self) -> tuple[Unread, ...]:
        """The facts that were asked for and could not be read."""
        return tuple(fact for fact in (self.acl, self.head) if isinstance(fact, Unread))

    @property
    def outcome(self) -> Outcome:
        if self.vanished:
            return Outcome.VANISHED
        unread = isinstance(self.acl, Unread) or isinstance(self.head, Unread)
        return Outcome.UNDECIDED if unread else Outcome.AUDITED
