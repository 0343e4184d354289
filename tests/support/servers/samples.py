"""Ready-made buckets: a mixed one that is stored, and one of any size that is computed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, overload

from auditor.model.object import ALL_USERS, Grant
from tests.support.odd_keys import ODD_KEYS
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


@dataclass(frozen=True, slots=True)
class _Names(Sequence[str]):
    """The keys of a computed bucket; none of them is kept."""

    total: int

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> list[str]: ...
    def __getitem__(self, at: int | slice) -> str | list[str]:
        if isinstance(at, slice):
            return [self[number] for number in range(*at.indices(self.total))]
        if not 0 <= at < self.total:
            raise IndexError(at)
        return f"data/{at // 1000:06d}/{at:09d}.bin"

    def __len__(self) -> int:
        return self.total

    def number(self, key: str) -> int | None:
        """The number of a key; None for any other key."""
        digits = key[-13:-4]
        if not digits.isdecimal() or int(digits) >= self.total:
            return None
        return int(digits) if self[int(digits)] == key else None


def plain_object(number: int, key: str) -> StubObject:
    """Object `number` of a computed bucket: 1 KiB, every thousandth public-read."""
    grants = canned("public-read", OWNER) if number % 1000 == 0 else None
    return StubObject(key=key, body=None, size=1024, etag=f"{number:032x}", grants=grants)


class GeneratedObjects:
    """Any number of objects, each computed when it is asked for."""

    def __init__(self, count: int, make: Callable[[int, str], StubObject] = plain_object) -> None:
        self.keys: Sequence[str] = _Names(count)
        self._names = _Names(count)
        self._make = make

    def versions(self, key: str) -> Sequence[StubObject]:
        number = self._names.number(key)
        return () if number is None else (self._make(number, key),)

    def remove(self, key: str, version_id: str | None = None) -> None:
        raise TypeError("the objects of this bucket are computed; none can be removed")


def generated_world(count: int, name: str = "audited") -> World:
    """A world with one bucket of `count` computed objects."""
    world = World()
    world.add(name, objects=GeneratedObjects(count))
    return world
