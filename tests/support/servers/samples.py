"""One world of objects as data, with what an audit must say of each kind; and a bucket of any size that is computed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from auditor.model.object import ALL_USERS, Grant
from tests.support.odd_keys import ODD_KEYS
from tests.support.servers.computed import ComputedObjects, NumberedKeys
from tests.support.servers.world import OWNER, STRANGER, StubBucket, StubObject, World, canned


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of object in the bucket of a private owner without policy or access block.

    fields: of StubObject. verdict, rules: what an audit by the default settings says of it. unread: operation and code
    of the fact that cannot be read, which makes the object undecided.
    """

    fields: Mapping[str, Any] = field(default_factory=dict)
    verdict: str = "private"
    rules: tuple[str, ...] = ()
    unread: tuple[str, str] | None = None


def _granting(grantee: str, permission: str) -> dict[str, Any]:
    return {"grants": (Grant(OWNER, "FULL_CONTROL"), Grant(grantee, permission))}


KMS_KEY: Final = "arn:aws:kms:us-east-1:111122223333:key/stub"
KINDS: Final[Mapping[str, Kind]] = {
    "private": Kind(),
    "public-read": Kind({"acl": "public-read"}, "exposed", ("O02",)),
    "authenticated-read": Kind({"acl": "authenticated-read"}, "exposed", ("O04",)),
    "public-write-acp": Kind(_granting(ALL_USERS, "WRITE_ACP"), "exposed", ("O01",)),
    "public-read-acp": Kind(_granting(ALL_USERS, "READ_ACP"), "exposed", ("O05",)),
    "stranger-read": Kind(_granting(STRANGER, "READ"), "shared", ("O08",)),
    "stranger-full": Kind(_granting(STRANGER, "FULL_CONTROL"), "shared", ("O07",)),
    "foreign-owner": Kind({"owner": STRANGER, "acl": "private"}, "shared", ("O09", "O11")),
    "foreign-owner-shared": Kind({"owner": STRANGER, "acl": "bucket-owner-full-control"}, "shared", ("O09",)),
    "unencrypted": Kind({"sse": None}, "private", ("E01",)),
    "kms": Kind({"sse": "aws:kms", "kms_key": KMS_KEY, "bucket_key": True}),
    "sse-c": Kind({"sse": None, "sse_c": True}, "private", ("E06",), ("HeadObject", "SSE-C")),
    "archived": Kind({"storage_class": "GLACIER"}),
    "denied-acl": Kind({"deny": {"acl"}}, "unknown", (), ("GetObjectAcl", "AccessDenied")),
    "denied-head": Kind({"deny": {"head"}}, "private", (), ("HeadObject", "403")),
}
SAMPLES: Final[Mapping[str, Mapping[str, Any]]] = {name: kind.fields for name, kind in KINDS.items()}
"""The fields of each kind."""


def sample_kind(number: int) -> str:
    """The kind of a sample bucket's object: the odd ones in turn at every third number, private otherwise."""
    kinds = list(SAMPLES)
    return kinds[1 + number // 3 % (len(kinds) - 1)] if number % 3 == 0 else "private"


def sample_key(number: int) -> str:
    """The key of a sample bucket's object: the odd keys first."""
    return [*ODD_KEYS.values()][number] if number < len(ODD_KEYS) else f"plain/{number:07d}.txt"


def sample_bucket(n: int, name: str = "audited") -> StubBucket:
    """A bucket of n small objects of all kinds: object i has the key sample_key(i) and is a sample_kind(i)."""
    bucket = StubBucket(name=name)
    for number in range(n):
        bucket.put(sample_key(number), f"object {number}".encode(), **SAMPLES[sample_kind(number)])
    return bucket


def plain_key(number: int) -> str:
    """The key of object `number` of a computed bucket."""
    return f"data/{number // 1000:06d}/{number:09d}.bin"


def plain_object(number: int, key: str) -> StubObject:
    """Object `number` of a computed bucket: 1 KiB, every thousandth public-read."""
    grants = canned("public-read", OWNER) if number % 1000 == 0 else None
    return StubObject(key=key, body=None, size=1024, etag=f"{number:032x}", grants=grants)


def generated_world(count: int, name: str = "audited") -> World:
    """A world with one bucket of `count` computed objects."""
    world = World()
    world.add(name, objects=ComputedObjects(NumberedKeys(count, plain_key, slice(-13, -4)), plain_object))
    return world
