"""A temporary file that keeps the digests of manifests, of any length, until all manifests are read."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final, Self

from auditor.errors import OutputError
from auditor.ledger.base import Expectation
from auditor.ledger.manifests.base import Record
from auditor.ledger.manifests.source import ManifestFile

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
        self._db.execute("PRAGMA journal_mode = OFF")
        self._db.execute("PRAGMA synchronous = OFF")
        self._db.execute("PRAGMA cache_size = -8192")
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
                f"another {what} of {key[:100]!r} than {self._sources[other].shown}:{line} gives:"
                " take out the line that is wrong",
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
                    Expectation(
                        key=key.decode(),
                        algorithm=algorithm,
                        digest=digest,
                        origin=origin.decode(),
                        imported_at=imported_at,
                        size=size,
                    )
                    for origin, key, algorithm, digest, size in rows
                ]

    def close(self) -> None:
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


@contextmanager
def _disk() -> Iterator[None]:
    """Convert SQLite's errors in this `with` block to an OutputError."""
    try:
        yield
    except sqlite3.Error as error:
        raise OutputError(
            f"the temporary file of an import cannot be written ({error}): free some space, or set TMPDIR"
        ) from error
