"""Tell by the ledger whether an object was deleted or retired, and whether the listing contradicts that."""

from __future__ import annotations

from auditor.ledger.base import Event
from auditor.ledger.key_rows import NO_SLACK, SLACK, is_after
from auditor.verify.merge import Pair


def listed_again(pair: Pair) -> Event | None:
    """Return a "listed" event if S3 lists an object that is deleted or retired in the ledger; None otherwise.

    A deletion counts only if it happened long (SLACK) before the listing.
    """
    ref, subject = pair.ref, pair.subject
    if ref is None or not ref.is_latest or subject is None:
        return None
    told = {"deleted": (subject.deleted_at, SLACK), "retired": (subject.retired_at, NO_SLACK)}
    belied = {name: at for name, (at, slack) in told.items() if at is not None and is_after(pair.listed_at, at, slack)}
    return Event.of(ref, pair.listed_at, "listed", belied) if belied else None


def is_told(pair: Pair) -> bool:
    """True if the ledger's record says that the pair's version was deleted. If the pair has no version, the same is
    asked of its key.
    """
    if pair.version is not None:
        return pair.version.removed_at is not None
    return pair.subject is not None and pair.subject.deleted_at is not None


def is_settled(pair: Pair) -> bool:
    """True if the ledger's record says that the pair's version was deleted or retired. If the pair has no version, the
    same is asked of its key.
    """
    known = pair.version or pair.subject
    return is_told(pair) or (known is not None and known.retired_at is not None)
