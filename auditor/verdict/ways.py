"""The ways: the actions by which a request reaches one object. A set of ways is an int, whose bit i stands for
WAYS[i].
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from auditor.model.wildcard import Wildcard

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
"""The ways that read the object's bytes."""
CONTROL: Final = READ | READ_ACP | WRITE_ACP
"""The ways that a grant of FULL_CONTROL allows; an object's owner has them too."""
VERSION_WAYS, ALL_WAYS = 0b10101010, 0b11111111

WAYS_OF: Final = {
    "READ": READ,
    "READ_ACP": READ_ACP,
    "WRITE": 0,  # has no effect on an object
    "WRITE_ACP": WRITE_ACP,
    "FULL_CONTROL": CONTROL,
}
"""The ways that each permission in an object's ACL allows (acl-overview, S3 User Guide)."""

DECRYPT: Final = ("kms:Decrypt",)
"""The actions in the policy of a KMS key that count: only kms:Decrypt."""


def ways_of(actions: Iterable[str], names: tuple[str, ...], *, negated: bool) -> int:
    """Return the set of those actions in `names` that a statement covers. actions: the patterns of Action; if negated,
    those of NotAction. The result is a set of ways: bit i stands for names[i].
    """
    patterns = [Wildcard.of(action.lower()) for action in actions]
    named = sum(1 << i for i, name in enumerate(names) if any(p.matches(name.lower()) for p in patterns))
    return (1 << len(names)) - 1 & ~named if negated else named
