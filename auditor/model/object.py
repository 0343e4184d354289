"""An object version: its listing entry, its ACL and HEAD, and the facts that could not be read.

A fact is a value that was read from S3. Its type is `T | Unread | Skipped`: the value, or the reason why there is none.
An empty value never stands for "unknown".
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Final

from msgspec import Meta, Struct, field

ALL_USERS: Final = "http://acs.amazonaws.com/groups/global/AllUsers"
AUTHENTICATED_USERS: Final = "http://acs.amazonaws.com/groups/global/AuthenticatedUsers"
LOG_DELIVERY: Final = "http://acs.amazonaws.com/groups/s3/LogDelivery"
PUBLIC_GROUPS: Final = frozenset({ALL_USERS, AUTHENTICATED_USERS})
ANONYMOUS_OWNER: Final = "65a011a29cdf8ec533ec3d1ccaae921c"
"""Canonical ID of the owner of an object that was uploaded without credentials (acl-overview, S3 User Guide)."""


Whole = Annotated[int, Meta(ge=0, le=2**63 - 1)]
"""A size or a count, as a JSON file or line has it."""


class Unread(Struct, frozen=True):
    """A fact that was asked for and could not be read.

    action: API operation (`GetObjectAcl`). code: S3's error code; the HTTP status if the answer has no body; or one of
    the auditor's own codes: `SSE-C`, `Malformed`, `Timeout`, `ConnectionError`, `MaxCalls`, `MaxCost`.
    """

    action: str
    code: str


class Skipped(Struct, frozen=True):
    """A fact that was not asked for, or does not exist on this server. reason: one phrase for the user."""

    reason: str


CUSTOMER_KEY: Final = Unread("HeadObject", "SSE-C")
"""Stands for the HEAD of an object that is encrypted with a customer's key: S3 refuses the HEAD without that key."""


class ObjectRef(Struct, frozen=True):
    """An entry of the listing: one object version, or the current version of an object."""

    key: str
    """The key as S3 holds it: any Unicode text."""
    etag: str
    """The ETag without quotes."""
    size: int
    """Size in bytes."""
    last_modified: str
    """S3's LastModified: ISO 8601 in UTC, to the second."""
    version_id: str | None = None
    """ID of the version; "null" for the null version. None unless the run lists versions."""
    storage_class: str = "STANDARD"
    """Storage class; STANDARD if S3 names none."""
    owner: str | None = None
    """Canonical ID of the owner; None if the listing names no owner."""
    is_latest: bool = True
    checksum_algorithms: tuple[str, ...] = ()
    """Names of the algorithms of the object's checksums that S3 stores, as S3 writes them ("SHA256")."""
    checksum_type: str | None = None
    restored: bool = False
    """True if the object is archived, and the listing says that a restored copy can be read now."""


class ObjectVersion(Struct, frozen=True):
    """An object version from another source than the listing. version_id: None if unknown. etag: without quotes."""

    key: str
    version_id: str | None
    etag: str
    size: Whole


AnyVersion = ObjectRef | ObjectVersion
"""An object version, from the listing or from another source. Both types have key, version_id, etag and size."""


class Ask(Struct, frozen=True):
    """The calls that a run makes for each object. acl, head: None if the run reads the ACL or the HEAD of each object,
    else the reason why it does not. acl_for_owner: True to read the ACL of an object whose owner the listing does not
    name, even if `acl` has a reason.
    """

    acl: Skipped | None = None
    head: Skipped | None = None
    acl_for_owner: bool = False

    @property
    def calls(self) -> int:
        """Number of calls for each object. ACLs that are read only because of acl_for_owner are not counted."""
        return (self.acl is None) + (self.head is None)


class Grant(Struct, frozen=True):
    """One grant of an ACL. grantee: canonical ID, or a group's URI. permission: as S3 names it, such as READ_ACP."""

    grantee: str
    permission: str


class Acl(Struct, frozen=True, cache_hash=True):
    """An object's or a bucket's ACL as S3 returns it. owner: canonical ID. Several caches use the ACL of each object as
    their key, so its hash is computed only once.
    """

    owner: str
    grants: tuple[Grant, ...]


HELD: Final = "ON"
RELEASED: Final = "OFF"
"""Values of the event hold of an object that is held now, and of one that was (HeadObject, S3 API reference)."""


class Head(Struct, frozen=True):
    """The headers of HeadObject's answer that describe the object. A field is None if the answer lacks the header; this
    does not mean that the object lacks the property. Dates are ISO 8601 in UTC, without fractions of a second.
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
    """Names and values of user metadata. The run folder gets the values only if `keep_metadata` is set."""
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
    checksum_sha512: str | None = None
    checksum_md5: str | None = None
    checksum_xxhash64: str | None = None
    checksum_xxhash3: str | None = None
    checksum_xxhash128: str | None = None
    website_redirect_location: str | None = None
    replication_status: str | None = None
    parts_count: int | None = None
    tag_count: int | None = None
    object_lock_mode: str | None = None
    object_lock_retain_until_date: str | None = None
    object_lock_legal_hold_status: str | None = None
    object_lock_event_hold: str | None = None
    """HELD while the object is held until an event, without a date; OFF after that."""
    object_lock_event_hold_duration_days: int | None = None
    object_lock_event_hold_duration_years: int | None = None
    """How long the object stays protected after the hold is released, in days or in years."""
    restore: str | None = None
    archive_status: str | None = None
    expiration: str | None = None

    @property
    def restored(self) -> bool:
        """True if an archived object has a restored copy that can be read (HeadObject, S3 API: x-amz-restore)."""
        return 'ongoing-request="false"' in (self.restore or "")


class PartialHead(Head, frozen=True):
    """A HEAD with members that were not read: unread names them. Their values are those of an absent header, and mean
    nothing.

    A rule that takes the whole HEAD, or an unread member, cannot judge a partial HEAD. Lines leave the unread members
    out, so that nobody takes them for absent.
    """

    unread: frozenset[str] = frozenset()


class Outcome(StrEnum):
    """How the audit of a listed object ended: all facts were read, the object was gone, or a fact could not be read."""

    AUDITED = "audited"
    VANISHED = "vanished"
    UNDECIDED = "undecided"


class DigestSources(Struct, frozen=True, kw_only=True):
    """The digests of one object version by their source: S3, the ledger, or the bytes themselves. Each mapping is
    {algorithm: lower-case hex}.
    """

    stored: Mapping[str, str] = field(default_factory=dict)
    """S3's own checksums of the whole object."""
    recorded: Mapping[str, str] = field(default_factory=dict)
    """The ledger's digests."""
    read: Mapping[str, str] = field(default_factory=dict)
    """Digests of the bytes that this run read. Empty if this run read no bytes, or if all digests agree."""


class FactOrigin(StrEnum):
    """Where a fact was read that the run itself did not read: in an earlier run, or in an S3 Inventory."""

    RUN = "run"
    INVENTORY = "inventory"


class ReadAt(Struct, frozen=True):
    """When the facts of an object were read that were not read along with its listing, in ISO 8601 in UTC.

    The time is the start of the run that read the fact, or the time of the Inventory: the fact is not older than that.
    None for a fact that was read along with the listing. acl_from, head_from: the earlier source of the fact; None if
    the run with the listing, or one that filled it, read the fact itself.
    """

    acl: str | None = None
    head: str | None = None
    acl_from: FactOrigin | None = None
    head_from: FactOrigin | None = None


class DormantAcl(Struct, frozen=True):
    """The part of an object's stored ACL that counts for nothing today: all of it under BucketOwnerEnforced, the grants
    to the public groups under IgnorePublicAcls. It counts again once that setting is off.

    acl: the owner of the stored ACL, "" if the owner counts today; and its hidden grants, without those to the bucket's
    owner. at: time of the S3 Inventory that shows them, in ISO 8601 in UTC; no call does.
    """

    acl: Acl
    at: str


NO_LEDGER: Final = Skipped("no ledger was given")


class Evidence(Struct, frozen=True):
    """The facts of one object: from the listing, its ACL, its HEAD, S3's checksums and the ledger."""

    ref: ObjectRef
    acl: Acl | Unread | Skipped
    head: Head | Unread | Skipped
    vanished: bool = False
    changed: bool = False
    """True if HEAD's ETag differs from the listing's; `ref` then has the values of the HEAD."""
    digests: DigestSources | Skipped = NO_LEDGER
    read_at: ReadAt | None = None
    """None if all facts were read along with the listing."""
    dormant: DormantAcl | None = None
    """None if nothing is known of hidden grants, or if there are none."""

    def with_digests(self, digests: DigestSources) -> Evidence:
        """Return the same facts with these digests."""
        return Evidence(self.ref, self.acl, self.head, self.vanished, self.changed, digests, self.read_at, self.dormant)

    @property
    def owner(self) -> str | Unread | Skipped:
        """Canonical ID of the object's owner, from the ACL; from the listing if the ACL was not read. If neither names
        the owner, the result is the ACL's Unread or Skipped.
        """
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
        # type() as no class is derived from Unread, and a false isinstance() of a Struct takes five times as long
        unread = type(self.acl) is Unread or type(self.head) is Unread
        return Outcome.UNDECIDED if unread else Outcome.AUDITED


CONTENT: Final = "content"
ENCRYPTION: Final = "encryption"
LOCK: Final = "lock"
TAGS: Final = "tags"
REPLICATION: Final = "replication"
ARCHIVE: Final = "archive"

GROUPS: Final[Mapping[str, tuple[str, ...]]] = {
    CONTENT: (
        "etag",
        "content_length",
        "last_modified",
        "content_type",
        "content_encoding",
        "content_disposition",
        "content_language",
        "cache_control",
        "expires",
        "metadata",
        "missing_meta",
        "version_id",
        "checksum_type",
        "checksum_crc32",
        "checksum_crc32c",
        "checksum_crc64nvme",
        "checksum_sha1",
        "checksum_sha256",
        "checksum_sha512",
        "checksum_md5",
        "checksum_xxhash64",
        "checksum_xxhash3",
        "checksum_xxhash128",
        "website_redirect_location",
        "parts_count",
    ),
    ENCRYPTION: ("server_side_encryption", "sse_kms_key_id", "bucket_key_enabled", "sse_customer_algorithm"),
    LOCK: (
        "object_lock_mode",
        "object_lock_retain_until_date",
        "object_lock_legal_hold_status",
        "object_lock_event_hold",
        "object_lock_event_hold_duration_days",
        "object_lock_event_hold_duration_years",
    ),
    TAGS: ("tag_count",),
    REPLICATION: ("replication_status",),
    ARCHIVE: ("storage_class", "restore", "archive_status", "expiration"),
}
"""The members of a HEAD by group. Those of CONTENT are kept while version, ETag, size and LastModified stand."""

GROUP_OF: Final[Mapping[str, str]] = {member: group for group, members in GROUPS.items() for member in members}
