"""Convert the name of a leased piece of work, and its checkpoint, to the text that every kind of ledger stores."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

from auditor.errors import LeaseLostError, LedgerError
from auditor.ledger.leases import Lease, Work
from auditor.ledger.matching import NULL
from auditor.model.json_codec import JsonError, parse_object

LARGEST_CHECKPOINT: Final = 300 * 1024
"""Largest size of a checkpoint's JSON, in bytes: the lease's item then stays below DynamoDB's limit of 400 KB."""


def work_name(work: Work) -> str:
    """Return the name under which a ledger stores the lease of a piece of work: 64 hex digits, a hash.

    The order of the algorithms does not change the name.
    """
    named = [work.bucket, work.key, work.version_id or NULL, work.etag, sorted(set(work.algorithms))]
    return hashlib.sha256(json.dumps(named).encode()).hexdigest()


def write_checkpoint(checkpoint: Mapping[str, Any]) -> str:
    """Return a checkpoint as JSON text. Raises LedgerError if it is too large."""
    text = json.dumps(checkpoint, separators=(",", ":"))
    if len(text) > LARGEST_CHECKPOINT:  # ASCII: a character is a byte
        raise LedgerError(
            f"a checkpoint of {len(text):,} bytes is too large for the ledger: it takes {LARGEST_CHECKPOINT:,}"
        )
    return text


def read_checkpoint(text: str | None) -> dict[str, Any] | None:
    """Parse the text of a checkpoint; return None for None.

    Return {} for a text that is not a JSON object. Whoever continues the work refuses {} as a checkpoint, and begins
    anew.
    """
    if text is None:
        return None
    try:
        return parse_object(text)
    except JsonError:
        return {}


def lost(lease: Lease) -> LeaseLostError:
    """Return the error for an owner whose lease another owner has taken over."""
    return LeaseLostError(
        f"the lease on {lease.work.key[:100]!r} in bucket {lease.work.bucket!r} is no longer {lease.owner[:100]!r}'s:"
        " another worker goes on with it; nothing was written"
    )
