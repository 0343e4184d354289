"""Import the digests of checksum manifests into the ledger, as expected digests. All manifests are read before anything
is written to the ledger. A temporary file keeps their digests, of any number, until then.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, Self

from msgspec import Struct

from auditor.errors import OutputError
from auditor.ledger.base import Expectation, KeyHistory
from auditor.ledger.manifests import AUTO, FORMS, form_of
from auditor.ledger.manifests.bagit import is_tag_manifest
from auditor.ledger.manifests.base import ManifestFile, Record
from auditor.model.target import Target

MAX_KEY: Final = 1024
BATCH: Final = 500
_TABLE: Final = """
CREATE TABLE digest (
  origin BLOB, key BLOB, algorithm TEXT, digest TEXT, size INTEGER, version BLOB, file INTEGER, line INTEGER,
  PRIMARY KEY (origin, key, algorithm)
) WITHOUT ROWID
"""


class Spool:
    """A temporary database of digests, one for each manifest name, object key and algorithm.

    Names, keys and versions are stored as bytes, because SQLite ends a text at a NUL.
    """

    def __init__(self, sources: Sequence[ManifestFile]) -> None:
        self._sources = sources
        # A database without a name is a temporary file of SQLite, which deletes it when it is closed.
        self._db = sqlite3.connect("", isolation_level=None)
        for setting in ("journal_mode = OFF", "synchronous = OFF", "cache_size = -8192"):
            self._db.execute(f"PRAGMA {setting}")
        self._db.execute(_TABLE)
        self._db.execute("BEGIN")

    def add(self, index: int, key: str, record: Record) -> None:
        """Add a record's digest for an object key, unless the manifest has an equal digest of the key already.

        If a manifest lists several versions of a key, only the last one stays. index: place of the manifest in
        `sources`. Raises ManifestError if the manifest has another digest of the key; the error names the lines of
        both.
        """
        source = self._sources[index]
        place = (source.origin.encode(), key.encode())
        version = record.version.encode()
        with _disk():
            if version:
                self._db.execute("DELETE FROM digest WHERE origin = ? AND key = ? AND version <> ?", (*place, version))
            done = self._db.execute(
                "INSERT INTO digest VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
                (*place, record.algorithm, record.digest, record.size, version, index, record.line),
            )
            if done.rowcount:
                return
            digest, size, other, line = self._db.execute(
                "SELECT digest, size, file, line FROM digest WHERE origin = ? AND key = ? AND algorithm = ?",
                (*place, record.algorithm),
            ).fetchone()
        if (digest, size) != (record.digest, record.size):
            what = record.algorithm if digest != record.digest else "size"
            raise source.error(
                record.line,
                f"another {what} of {key[:100]!r} than in {self._sources[other].shown}:{line}: remove the wrong line",
            )

    def count(self, index: int) -> int:
        """Return the number of digests from the manifest at this index of `sources`, without the digests that earlier
        manifests had too.
        """
        with _disk():
            (number,) = self._db.execute("SELECT count(*) FROM digest WHERE file = ?", (index,)).fetchone()
        return int(number)

    def batches(self, imported_at: str) -> Iterator[list[Expectation]]:
        """Yield all digests as expected digests, in lists, sorted by manifest and key."""
        with _disk():
            cursor = self._db.execute(
                "SELECT origin, key, algorithm, digest, size FROM digest ORDER BY origin, key, algorithm"
            )
            while rows := cursor.fetchmany(BATCH):
                yield [
                    Expectation(key.decode(), algorithm, digest, origin.decode(), imported_at, size)
                    for origin, key, algorithm, digest, size in rows
                ]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._db.close()


@contextmanager
def _disk() -> Iterator[None]:
    """Convert SQLite's errors in this `with` block to an OutputError."""
    try:
        yield
    except sqlite3.Error as error:
        raise OutputError(
            f"the temporary file of an import cannot be written ({error}): free some space, or set TMPDIR"
        ) from error


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
            raise source.error(
                record.line, f"the name is longer than a key can be ({MAX_KEY:,} bytes): remove the line"
            )
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
