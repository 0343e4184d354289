"""Write the ledger's digests as a checksum manifest."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass

from auditor.ledger.base import KeyHistory
from auditor.ledger.manifests.base import Form
from auditor.model.target import Target


@dataclass(slots=True)
class Exported:
    """keys: keys in the manifest. Left out: deleted (by a notification), without (such a digest), unnameable (in this
    form). complete: the export reached the ledger's end.
    """

    keys: int = 0
    deleted: int = 0
    without: int = 0
    unnameable: int = 0
    complete: bool = False


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
    """Write the manifest, keys in the order of S3's listing. relative: names without the prefix. Raises LedgerError.

    go_on: called before each key with the number of keys written; False stops.
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
