"""The actions that reach one object. A set of ways is an int whose bit i stands for WAYS[i]."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from auditor.verdict.wildcard import Wildcard

WAYS: Final = (
    "s3:GetObject",
    "s3:GetObjectVersion",
    "s3:GetObjectAcl",
    "s3:GetObjectVersionAcl",
    "s3:PutObjectAcl",
    "s3:PutObjectVersionAcl",
    "s3:GetObjectTorrent",
    "s3:GetObjectVersionForReplication",
)
READ, READ_ACP, WRITE_ACP = 0b00000011, 0b00001100, 0b00110000
BYTES: Final = 0b11000011
"""The ways that lead to the object's bytes."""
CONTROL: Final = READ | READ_ACP | WRITE_ACP
"""The ways that FULL_CONTROL gives, and that an owner has."""
VERSION_WAYS, ALL_WAYS = 0b10101010, 0b11111111

WAYS_OF: Final = {
    "READ": READ,
    "READ_ACP": READ_ACP,
    "WRITE": 0,  # has no effect on an object
    "WRITE_ACP": WRITE_ACP,
    "FULL_CONTROL": CONTROL,
}
"""The ways that a permission of an object's ACL gives (acl-overview, S3 User Guide)."""

DECRYPT: Final = ("kms:Decrypt",)
"""The one way through the policy of a KMS key."""


def ways_of(actions: Iterable[str], names: tuple[str, ...], *, negated: bool) -> int:
    """Return the set of those of `names` that the patterns of a statement's Action cover; if negated, that the patterns
    of NotAction leave over.
    """
    patterns = [Wildcard.of(action.lower()) for action in actions]
    named = sum(1 << i for i, name in enumerate(names) if any(p.matches(name.lower()) for p in patterns))
    return (1 << len(names)) - 1 & ~named if negated else named
