"""The world that the stub serves: buckets, objects and their versions, as plain data that a test sets as it likes."""

from __future__ import annotations

import bisect
import hashlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final, Literal, Protocol

from auditor.model.bucket import BUCKET_OWNER_ENFORCED, Encryption, PublicAccessBlock
from auditor.model.object import ALL_USERS, AUTHENTICATED_USERS, PUBLIC_GROUPS, Acl, Grant
from auditor.s3.storage_class import ARCHIVED_CLASSES

OWNER: Final = "a0" * 32
"""Canonical ID of the caller, who owns every bucket by default."""
STRANGER: Final = "b1" * 32
"""Canonical ID of another account."""
ACCOUNT: Final = "111122223333"
SSE_S3: Final = Encryption("AES256")
WRITTEN: Final = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


class Odd(StrEnum):
    """The odd answers that a test can set for a call of a bucket or of the account.

    EMPTY: 200 without a body, as Ceph RGW answers for sub-resources it does not know. MALFORMED: 200 with the root
    element and nothing in it.
    """

    DENIED = "denied"
    EMPTY = "empty"
    MALFORMED = "malformed"


def canned(name: str, owner: str, bucket_owner: str = OWNER) -> tuple[Grant, ...]:
    """The grants of a canned ACL of S3, such as "public-read"."""
    others = {
        "private": (),
        "public-read": (Grant(ALL_USERS, "READ"),),
        "public-read-write": (Grant(ALL_USERS, "READ"), Grant(ALL_USERS, "WRITE")),
        "authenticated-read": (Grant(AUTHENTICATED_USERS, "READ"),),
        "bucket-owner-read": (Grant(bucket_owner, "READ"),),
        "bucket-owner-full-control": (Grant(bucket_owner, "FULL_CONTROL"),),
    }[name]
    return (Grant(owner, "FULL_CONTROL"), *others)


@dataclass(slots=True, kw_only=True)
class StubObject:
    """One version of an object. body: its bytes; None: `size` bytes that are computed when they are read.

    version_id: None in a bucket that never had versioning. grants: as stored, before anything masks them; None: the
    owner's FULL_CONTROL. checksums: algorithm to base64 ("SHA256"). headers: further headers of HEAD and GET, by their
    names (x-amz-object-lock-mode). restored: a restored copy can be read. deny: of "acl", "head", "get", and
    "checksum" (a HEAD that asks for checksums, as without kms:Decrypt), those that are answered with 403.
    """

    key: str
    body: bytes | None = b""
    size: int = -1
    etag: str = ""
    last_modified: datetime = WRITTEN
    storage_class: str = "STANDARD"
    owner: str = OWNER
    grants: tuple[Grant, ...] | None = None
    version_id: str | None = None
    delete_marker: bool = False
    content_type: str = "text/plain"
    metadata: dict[str, str] = field(default_factory=dict)
    sse: str | None = "AES256"
    kms_key: str | None = None
    bucket_key: bool = False
    sse_c: bool = False
    checksums: dict[str, str] = field(default_factory=dict)
    checksum_type: str | None = None
    headers: dict[str, str] = field(default_factory=dict)
    restored: bool = False
    deny: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.deny = set(self.deny)  # a caller may give the same set to several objects
        if self.body is not None and self.size < 0:
            self.size = len(self.body)
        if not self.etag:
            seen = self.body if self.body is not None else f"{self.key}:{self.size}".encode()
            self.etag = hashlib.md5(seen).hexdigest()

    @property
    def archived(self) -> bool:
        """The object's bytes cannot be read before it is restored."""
        return not self.restored and (self.storage_class in ARCHIVED_CLASSES or "x-amz-archive-status" in self.headers)

    def read(self, start: int = 0, length: int | None = None) -> bytes:
        """Bytes [start, start + length) of the object."""
        end = self.size if length is None else min(start + length, self.size)
        if self.body is not None:
            return self.body[start:end]
        block = hashlib.sha256(self.key.encode()).digest()
        skip = start % len(block)
        return (block * ((end - start) // len(block) + 2))[skip : skip + end - start]


class Objects(Protocol):
    """A bucket's objects. keys: sorted by their UTF-8 bytes, which is the order of str too."""

    @property
    def keys(self) -> Sequence[str]: ...
    def versions(self, key: str) -> Sequence[StubObject]:
        """The versions of a key, newest first; empty when there is no such key."""
        ...

    def remove(self, key: str, version_id: str | None = None) -> None:
        """Remove one version, or the whole key."""
        ...


class StoredObjects:
    """Objects that are kept in memory."""

    def __init__(self) -> None:
        self.keys: list[str] = []
        self._versions: dict[str, list[StubObject]] = {}

    def versions(self, key: str) -> Sequence[StubObject]:
        return self._versions.get(key, ())

    def add(self, item: StubObject) -> None:
        """Make it the newest version of its key; without a version id, the only one."""
        if item.key not in self._versions:
            self._versions[item.key] = []
            bisect.insort(self.keys, item.key)
        older = [] if item.version_id is None else self._versions[item.key]
        self._versions[item.key] = [item, *(old for old in older if (old.version_id or "null") != item.version_id)]

    def remove(self, key: str, version_id: str | None = None) -> None:
        left = [] if version_id is None else [v for v in self._versions.get(key, ()) if v.version_id != version_id]
        if left:
            self._versions[key] = left
        elif self._versions.pop(key, None) is not None:
            del self.keys[bisect.bisect_left(self.keys, key)]


@dataclass(slots=True, kw_only=True)
class StubBucket:
    """A bucket and its sub-resources; None: never configured, which S3 answers with 404 where it does so.

    account: its owner's. abac: Enabled or Disabled. inventories: its S3 Inventory configurations, in botocore's form.
    blocked_encryption: the kinds that it refuses, or NONE. versioning: Enabled or Suspended. request_payer: BucketOwner
    or Requester. odd: operation ("GetBucketPolicy", "ListObjectsV2") to a way of answering. wrong_region: answer 301
    always, or when the signature names another region.
    """

    name: str
    region: str = "us-east-1"
    owner: str = OWNER
    account: str = ACCOUNT
    objects: Objects = field(default_factory=StoredObjects)
    ownership: str | None = "ObjectWriter"
    public_access_block: PublicAccessBlock | None = None
    acl: Acl | None = None
    policy: str | None = None
    policy_is_public: bool = False
    versioning: str | None = None
    encryption: Encryption | None = SSE_S3
    blocked_encryption: tuple[str, ...] | None = None
    request_payer: str = "BucketOwner"
    abac: str = "Disabled"
    tags: dict[str, str] = field(default_factory=dict)
    inventories: list[dict[str, Any]] = field(default_factory=list)
    odd: dict[str, Odd] = field(default_factory=dict)
    wrong_region: Literal["never", "signature", "always"] = "never"
    _ids: Iterator[int] = field(default_factory=lambda: itertools.count(1), repr=False)

    def put(self, key: str, body: bytes | None = b"", *, acl: str | None = None, **fields: Any) -> StubObject:
        """Store an object; acl: a canned ACL's name, instead of `grants`; fields: of StubObject."""
        fields.setdefault("owner", self.owner)
        if acl is not None:
            fields["grants"] = canned(acl, fields["owner"], self.owner)
        fields.setdefault("version_id", self._next_version())
        item = StubObject(key=key, body=body, **fields)
        self._store.add(item)
        return item

    def delete(self, key: str) -> StubObject | None:
        """Delete as S3 does: a delete marker where versioning was ever on, else the key is gone."""
        if self.versioning is None:
            self.objects.remove(key)
            return None
        return self.put(key, delete_marker=True)

    @property
    def _store(self) -> StoredObjects:
        if not isinstance(self.objects, StoredObjects):
            raise TypeError("the objects of this bucket are computed; nothing can be put there")
        return self.objects

    def _next_version(self) -> str | None:
        if self.versioning == "Enabled":
            return f"v{next(self._ids):07d}.stub"
        return None if self.versioning is None else "null"


@dataclass(slots=True, kw_only=True)
class StubGrants:
    """The S3 Access Grants instance of an account. grants: on all buckets, as botocore has the entries of
    ListAccessGrants. policy: its resource policy; "" for none. page: the number of grants on a page.
    """

    instance: str
    grants: Sequence[Mapping[str, Any]] = ()
    policy: str = ""
    page: int = 1000


@dataclass(slots=True, kw_only=True)
class World:
    """Everything that one caller sees. odd: for ListBuckets, GetCallerIdentity and the calls of S3 Control. grants:
    None if the account has no S3 Access Grants instance.
    """

    buckets: dict[str, StubBucket] = field(default_factory=dict)
    owner: str = OWNER
    account: str = ACCOUNT
    arn: str = f"arn:aws:iam::{ACCOUNT}:user/auditor"
    public_access_block: PublicAccessBlock | None = None
    grants: StubGrants | None = None
    odd: dict[str, Odd] = field(default_factory=dict)

    def add(self, name: str, **fields: Any) -> StubBucket:
        """Make a bucket; fields: of StubBucket."""
        bucket = self.buckets[name] = StubBucket(name=name, **fields)
        return bucket

    def effective_acl(self, bucket: StubBucket, item: StubObject) -> Acl:
        """The answer of GetObjectAcl, with enforced ownership and ignored public ACLs applied as S3 does."""
        if bucket.ownership == BUCKET_OWNER_ENFORCED:
            return Acl(bucket.owner, canned("private", bucket.owner))
        grants = item.grants if item.grants is not None else canned("private", item.owner)
        return Acl(item.owner, self._unmasked(bucket, grants))

    def effective_bucket_acl(self, bucket: StubBucket) -> Acl:
        """The answer of GetBucketAcl."""
        acl = bucket.acl or Acl(bucket.owner, canned("private", bucket.owner))
        return Acl(acl.owner, self._unmasked(bucket, acl.grants))

    def _unmasked(self, bucket: StubBucket, grants: tuple[Grant, ...]) -> tuple[Grant, ...]:
        levels = (bucket.public_access_block, self.public_access_block)
        if any(level is not None and level.ignore_public_acls for level in levels):
            return tuple(grant for grant in grants if grant.grantee not in PUBLIC_GROUPS)
        return grants
