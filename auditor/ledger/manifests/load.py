"""Import the digests of checksum manifests into the ledger, as expected digests. All manifests are read before anything
is written to the ledger.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from auditor.ledger.base import KeyHistory
from auditor.ledger.manifests import AUTO, FORMS, form_of
from auditor.ledger.manifests.bagit import is_tag_manifest
from auditor.ledger.manifests.source import ManifestFile
from auditor.ledger.manifests.spool import Spool
from auditor.model.target import Target

MAX_KEY: Final = 1024


class Read(Struct, frozen=True, kw_only=True):
    """The counts of one manifest file that was read.

    form: name of its form; "" for a tag manifest of BagIt, which is not imported. digests: number of digests to import.
    other: number of digests left out because their algorithm is not wanted.
    """

    file: str
    form: str
    digests: int
    other: int


def read_all(
    sources: Sequence[ManifestFile], spool: Spool, prefix: str, form: str = AUTO, algorithms: Sequence[str] = ()
) -> list[Read]:
    """Read all manifest files into the spool, a temporary database. The object keys are `prefix` + file name.

    form: name of the manifests' form; AUTO to detect it for each file. algorithms: the wanted ones; empty for all.
    Raises UsageError, or ManifestError, which names the file and the line.
    """
    return [_read(source, index, spool, prefix, form, algorithms) for index, source in enumerate(sources)]


def _read(source: ManifestFile, index: int, spool: Spool, prefix: str, form: str, algorithms: Sequence[str]) -> Read:
    if form != "csv" and is_tag_manifest(source.shown):
        return Read(file=source.shown, form="", digests=0, other=0)
    chosen = form_of(source) if form == AUTO else FORMS[form]
    other = 0
    for record in chosen.read(source):
        key = prefix + record.name
        if not key:
            raise source.error(record.line, "the line names no file: complete it, or take it out")
        if len(key.encode()) > MAX_KEY:
            raise source.error(record.line, f"the name is longer than a key, {MAX_KEY:,} bytes: take the line out")
        if algorithms and record.algorithm not in algorithms:
            other += 1
            continue
        spool.add(index, key, record)
    return Read(file=source.shown, form=chosen.name, digests=spool.count(index), other=other)


class Imported(Struct, frozen=True):
    """The counts of an import.

    new: number of expected digests that were added or changed. known: number of digests that the ledger had already.
    complete: True if all digests of the spool were written.
    """

    new: int
    known: int
    complete: bool


async def import_all(
    spool: Spool, ledger: KeyHistory, target: Target, imported_at: str, go_on: Callable[[int], bool]
) -> Imported:
    """Write the spool's digests into the ledger as expected digests. Raises LedgerError.

    An import can be repeated without harm. go_on: called before each batch with the number of digests written so far;
    returns False to stop the import.
    """
    new = total = 0
    for batch in spool.batches(imported_at):
        if not go_on(total):
            return Imported(new, total - new, complete=False)
        new += await ledger.expect(target.bucket, batch)
        total += len(batch)
    return Imported(new, total - new, complete=True)
