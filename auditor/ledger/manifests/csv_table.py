"""Manifests in CSV: the auditor's own, with all digests of all versions, and plain tables of keys and digests."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from auditor.ledger.base import KeyRecord, Version
from auditor.ledger.manifests.base import HEX_DIGITS, Form, ManifestFile, Record, algorithm_of, checked

COLUMNS: Final = (
    "key",
    "version_id",
    "etag",
    "size",
    "algorithm",
    "digest",
    "source",
    "recorded_at",
    "verified_at",
    "bytes_read",
)
"""The header of the tables that the auditor writes."""
HEADINGS: Final = ("key", "digest", "algorithm", "size")
"""The column names of other programs' tables, in any order. `algorithm` and `size` may be absent."""

_FORMULA: Final = re.compile(r"['=+\-@\t\r\n]")
_WHOLE: Final = re.compile(r"[0-9]{1,16}")


def neutral(cell: str) -> str:
    """Put an apostrophe before a cell that a spreadsheet would run as a formula, or that begins with an apostrophe."""
    return f"'{cell}" if _FORMULA.match(cell) else cell


def original(cell: str) -> str:
    """Remove the apostrophe that neutral() put before a cell."""
    return cell.removeprefix("'")


def rows(name: str, subject: KeyRecord, algorithms: tuple[str, ...]) -> Iterator[bytes]:
    for version in subject.versions:
        for algorithm in algorithms:
            if algorithm in version.digests:
                yield csv_row(_cells(name, version, algorithm))


def _cells(name: str, version: Version, algorithm: str) -> tuple[str, ...]:
    known = version.digests[algorithm]
    return (
        name,
        version.version_id,
        version.etag,
        str(version.size),
        algorithm,
        known.digest,
        known.source,
        known.recorded_at,
        known.verified_at or "",
        str(known.bytes_read),
    )


def csv_row(cells: Iterable[str]) -> bytes:
    """Return a row of CSV, each cell made harmless by neutral()."""
    text = io.StringIO()
    # With this line end the writer quotes a cell that has a CR or an LF, as RFC 4180 wants.
    csv.writer(text, lineterminator="\r\n").writerow(map(neutral, cells))
    return text.getvalue().encode()


def read(source: ManifestFile) -> Iterator[Record]:
    table = _table(source)
    number, head = next(table, (1, []))
    if not _accepted(head):
        raise source.error(
            number,
            "the header must be that of the auditor's export, or name the columns key and digest, and optionally"
            " algorithm and size, in any order, separated by commas",
        )
    for number, cells in table:
        if not cells:
            continue
        if len(cells) != len(head):
            raise source.error(number, f"{len(cells)} cells, where the header has {len(head)}: complete the row")
        yield _record(dict(zip(head, cells, strict=True)), source, number)


def _table(source: ManifestFile) -> Iterator[tuple[int, list[str]]]:
    """Yield each row of a CSV file, with the number of the row's first line in the file. Raises ManifestError."""
    began = 0

    def texts() -> Iterator[str]:
        nonlocal began
        for number, text in source.lines():
            began = began or number
            yield text

    table = csv.reader(texts(), strict=True)
    try:
        for cells in table:
            yield began, cells
            began = 0
    except csv.Error as error:
        raise source.error(began, f"this row is not CSV ({error}): write it as RFC 4180 says") from error


def _accepted(head: Sequence[str]) -> bool:
    plain = {"key", "digest"} <= set(head) <= set(HEADINGS) and len(set(head)) == len(head)
    return plain or tuple(head) == COLUMNS


def is_header(text: str) -> bool:
    """True if the line is the header of a table that read() can read."""
    return _accepted(text.split(","))


def _record(cells: Mapping[str, str], source: ManifestFile, line: int) -> Record:
    ours = len(cells) == len(COLUMNS)
    if ours:
        cells = {heading: original(cell) for heading, cell in cells.items()}
    digest = cells["digest"].strip()
    if not digest:
        raise source.error(line, "the row has no digest: complete it, or take it out")
    if "algorithm" in cells:
        algorithm = _algorithm(cells["algorithm"], source, line)
    else:
        algorithm = algorithm_of(digest, source, line)
    return Record(
        line,
        cells["key"] if ours else cells["key"].removeprefix("./"),
        algorithm,
        checked(digest, algorithm, source, line),
        _size(cells.get("size", "").strip(), source, line),
        # With the ETag: the versions of an overwritten object in an unversioned bucket differ in nothing else.
        f"{cells['version_id']}#{cells['etag']}" if ours else "",
    )


def _algorithm(cell: str, source: ManifestFile, line: int) -> str:
    algorithm = cell.strip().lower().replace("-", "")
    if algorithm not in HEX_DIGITS:
        raise source.error(line, f"{cell[:40]!r} is not one of {', '.join(HEX_DIGITS)}: the ledger keeps only these")
    return algorithm


def _size(text: str, source: ManifestFile, line: int) -> int | None:
    if not text:
        return None
    if not _WHOLE.fullmatch(text):
        raise source.error(line, f"{text[:40]!r} is not a size: write bytes as a whole number, or leave the cell empty")
    return int(text)


TABLE: Final = Form(
    name="csv",
    algorithms=tuple(HEX_DIGITS),
    single=False,
    head=csv_row(COLUMNS),
    nameable=lambda name: True,  # a CSV cell can hold any text
    rows=rows,
    read=read,
)
