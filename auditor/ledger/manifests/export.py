"""Export the ledger's digests as a checksum manifest."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing

from msgspec import Struct

from auditor.ledger.base import KeyHistory
from auditor.ledger.manifests.base import Form
from auditor.model.target import Target


class Exported(Struct):
    """The counts of an export: keys that are in the manifest, and keys that were left out, by reason."""

    keys: int = 0
    """Number of keys in the manifest."""
    deleted: int = 0
    """Number of keys left out because a notification reported their deletion."""
    retired: int = 0
    """Number of keys left out because a person retired them."""
    stale: int = 0
    """Number of keys whose newest content, reported by a notification, has no digest in the ledger. A form with one
    line for each key leaves them out."""
    without: int = 0
    """Number of keys left out because they have no digest by the wanted algorithms."""
    unnameable: int = 0
    """Number of keys left out because a line of this form cannot hold their name."""
    complete: bool = False
    """True if the export reached the end of the ledger."""

    @property
    def whole(self) -> bool:
        """True if the manifest has every existing key that the ledger knows, with the digest of its newest content."""
        return self.complete and not (self.stale or self.without or self.unnameable)


async def export(
    ledger: KeyHistory,
    target: Target,
    form: Form,
    algorithms: tuple[str, ...],
    write: Callable[[bytes], object],
    *,
    relative: bool = False,
    go_on: Callable[[int], bool] = lambda keys: True,
) -> Exported:
    """Write a manifest of all keys that the target covers, in the order of S3's listing. Raises LedgerError.

    relative: True to write the names without the target's prefix. go_on: called before each key with the number of keys
    written so far; returns False to stop the export.
    """
    counts = Exported()
    if form.head:
        write(form.head)
    async with aclosing(ledger.subjects(target.bucket, target.prefix)) as subjects:
        async for subject in subjects:
            if not go_on(counts.keys):
                return counts
            if subject.deleted_at is not None:
                counts.deleted += 1
                continue
            if subject.retired_at is not None:
                counts.retired += 1
                continue
            if subject.unrecorded:
                counts.stale += 1
                if form.single:
                    continue
            name = subject.key.removeprefix(target.prefix) if relative else subject.key
            lines = b"".join(form.rows(name, subject, algorithms))
            if not lines:
                counts.without += 1
            elif not form.nameable(name):
                counts.unnameable += 1
            else:
                write(lines)
                counts.keys += 1
    counts.complete = True
    return counts
