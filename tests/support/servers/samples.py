"""Ready-made buckets: a mixed one that is stored, and one of any size that is computed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from auditor.model.object import ALL_USERS, Grant
from tests.support.odd_keys import ODD_KEYS
from tests.support.servers.computed import ComputedObjects, NumberedKeys
from tests.support.servers.world import OWNER, STRANGER, StubBucket, StubObject, World, canned

SAMPLES: Final[Mapping[str, Mapping[str, Any]]] = {
    "private": {},
    "public-read": {"acl": "public-read"},
    "authenticated-read": {"acl": "authenticated-read"},
    "public-write-acp": {"grants": (Grant(OWNER, "FULL_CONTROL"), Grant(ALL_USERS, "WRITE_ACP"))},
    "public-read-acp": {"grants": (Grant(OWNER, "FULL_CONTROL"), Grant(ALL_USERS, "READ_ACP"))},
    "stranger-read": {"grants": (Grant(OWNER, "FULL_CONTROL"), Grant(STRANGER, "READ"))},
    "stranger-full": {"grants": (Grant(OWNER, "FULL_CONTROL"), Grant(STRANGER, "FULL_CONTROL"))},
    "foreign-owner": {"owner": STRANGER, "acl": "private"},
    "foreign-owner-shared": {"owner": STRANGER, "acl": "bucket-owner-full-control"},
    "unencrypted": {"sse": None},
    "kms": {"sse": "aws:kms", "kms_key": "arn:aws:kms:us-east-1:111122223333:key/stub", "bucket_key": True},
    "sse-c": {"sse": None, "sse_c": True},
    "archived": {"storage_class": "GLACIER"},
    "denied-acl": {"deny": {"acl"}},
    "denied-head": {"deny": {"head"}},
}
"""The kinds of object in sample_bucket, with the fields of each."""


def sample_kind(number: int) -> str:
    """The kind of a sample bucket's object: the odd ones in turn at every third number, private otherwise."""
    kinds = list(SAMPLES)
    return kinds[1 + number // 3 % (len(kinds) - 1)] if number % 3 == 0 else "private"


def sample_bucket(n: int, name: str = "audited") -> StubBucket:
    """A bucket of n small objects of all kinds, the odd keys first; object i is a sample_kind(i)."""
    bucket = StubBucket(name=name)
    odd = list(ODD_KEYS.values())
    for number in range(n):
        key = odd[number] if number < len(odd) else f"plain/{number:07d}.txt"
        bucket.put(key, f"object {number}".encode(), **SAMPLES[sample_kind(number)])
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
