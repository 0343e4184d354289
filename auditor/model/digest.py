"""Digest algorithms, their names, sizes, hexadecimal and base64; and the outcomes of a verification by digests."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Final

SIZES: Final[Mapping[str, int]] = {
    "sha256": 32,
    "sha1": 20,
    "sha512": 64,
    "md5": 16,
    "crc64nvme": 8,
    "crc32": 4,
    "crc32c": 4,
    "xxhash64": 8,
    "xxhash3": 8,
    "xxhash128": 16,
}
"""Length of a digest in bytes, for each algorithm of the checksums that S3 can store (GetObject, S3 API reference)."""

_HEX: Final = re.compile(r"[0-9a-f]+")


def of_base64(text: str | bytes, algorithm: str) -> str | None:
    """Convert a base64 digest to hex. Return None if it is not base64, or has the wrong length for the algorithm."""
    try:
        digest = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):  # ValueError: a str with non-ASCII characters
        return None
    return digest.hex() if len(digest) == SIZES[algorithm] else None


def of_hex(text: str, algorithm: str) -> str | None:
    """Return a hexadecimal digest in lower case; None if it is not hex, or has the wrong length for the algorithm."""
    digest = text.lower()
    return digest if len(digest) == 2 * SIZES[algorithm] and _HEX.fullmatch(digest) else None


ALGORITHMS: Final = ("sha256", "sha512", "sha1", "md5", "crc64nvme")
"""Every algorithm that a user can ask for, the default first."""


class VerifyOutcome(StrEnum):
    """The outcome of verifying one object. The object is in the listing, or only the ledger knows it."""

    MATCH = "match"
    MISMATCH = "mismatch"
    CHANGED = "changed"
    MISSING = "missing"
    LOST = "lost"
    DELETED = "deleted"
    RETIRED = "retired"
    ACKNOWLEDGED = "acknowledged"
    NEW = "new"
    UNREADABLE = "unreadable"
    LEDGER_FAULT = "ledger_fault"
    ARCHIVED = "archived"
    IN_FLIGHT = "in_flight"
    NOT_DUE = "not_due"
    LEFT_FOR_COST = "left_for_cost"


FINDINGS: Final = (
    VerifyOutcome.MISMATCH,
    VerifyOutcome.MISSING,
    VerifyOutcome.LOST,
    VerifyOutcome.CHANGED,
    VerifyOutcome.DELETED,
    VerifyOutcome.NEW,
)
"""Outcomes that `--fail-on` may name. An object with any other outcome is as expected, or was not verified."""

FAIL_ON: Final = (VerifyOutcome.MISMATCH, VerifyOutcome.MISSING, VerifyOutcome.LOST)
"""Outcomes that make `auditor verify` end with exit code 3, if no setting says otherwise."""
