"""Manifests in CSV: ours, with every version and all its evidence, and plain ones with a name and a digest a row."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

from auditor.ledger.base import KeyRecord, Version
from auditor.ledger.manifests.base import HEX_DIGITS, Form, Record, algorithm_of, checked
from auditor.ledger.manifests.source import ManifestFile

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
"""The header of ours, by which a reader knows it."""

NAMES: Final = frozenset({"key", "path", "name", "file", "filename"})
DIGESTS: Final = frozenset({"digest", "checksum", "hash"})
SIZES: Final = frozenset({"size", "bytes", "length"})
_FORMULA: Final = re.compile(r"['=+\-@\t\r\n]")
_WHOLE: Final = re.compile(r"[0-9]{1,16}")


def neutral(cell: str) -> str:
    """No spreadsheet runs it: an apostrophe stands before what begins like a formula, or with an apostrophe."""
    return f"'{cell}" if _FORMULA.match(cell) else cell


def original(cell: str) -> str:
    """What neutral() was given."""
    return cell.removeprefix("'")


def nameable(name: str) -> bool:
    return True


def rows(name: str, subject: KeyRecord, algorithms: tuple[str, ...]) -> Iterator[bytes]:
    for version in subject.versions:
        for algorithm in algorithms:
            if algorithm in version.digests:
                yield _row(_cells(name, version, algorithm))


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


def _row(cells: Iterable[str]) -> bytes:
    text = io.StringIO()
    # With this line end the writer quotes a cell for either of its characters, as RFC 4180 wants.
    csv.writer(text, lineterminator="\r\n").writerow(map(neutral, cells))
    return text.getvalue().encode()


@dataclass(frozen=True, slots=True)
class _Layout:
    """Which column is what. digests: each with the algorithm that its header names, None where another cell does."""

    ours: bool
    width: int
    name: int
    digests: Mapping[int, str | None]
    algorithm: int | None
    size: int | None


def read(source: ManifestFile) -> Iterator[Record]:
    table = _table(source)
    number, head = next(table, (1, []))
    layout = _layout(head, source, number)
    for number, cells in table:
        if not cells:
            continue
        if len(cells) != layout.width:
            raise source.error(number, f"{len(cells)} cells, where the header has {layout.width}: complete the row")
        yield from _records(list(map(original, cells)) if layout.ours else cells, layout, source, number)


def _table(source: ManifestFile) -> Iterator[tuple[int, list[str]]]:
    """Each row with the number of its first line."""
    lines = source.lines()
    head = next(lines, (1, ""))
    began = 0

    def texts() -> Iterator[str]:
        nonlocal began
        for number, text in chain([head], lines):
            began = began or number
            yield text

    table = csv.reader(texts(), delimiter=_separator(head[1]), strict=True)
    try:
        for cells in table:
            yield began, cells
            began = 0
    except csv.Error as error:
        raise source.error(began, f"this row is not CSV ({error}): write it as RFC 4180 says") from error


def _separator(head: str) -> str:
    return max(",;\t", key=head.count)


def _layout(head: Sequence[str], source: ManifestFile, line: int) -> _Layout:
    if tuple(head) == COLUMNS:
        return _Layout(True, len(COLUMNS), 0, {5: None}, 4, 3)
    titles = [title.strip().lower() for title in head]
    names = [column for column, title in enumerate(titles) if title in NAMES]
    digests = {
        column: _named(title) for column, title in enumerate(titles) if title in DIGESTS or _named(title) is not None
    }
    if len(names) != 1 or not digests:
        raise source.error(
            line,
            f"the header must have one column of names ({', '.join(sorted(NAMES))}) and one of digests"
            f" ({', '.join(sorted(DIGESTS))}, or the algorithm's name)",
        )
    algorithms = [column for column, title in enumerate(titles) if title == "algorithm"]
    sizes = [column for column, title in enumerate(titles) if title in SIZES]
    return _Layout(
        False, len(head), names[0], digests, algorithms[0] if algorithms else None, sizes[0] if sizes else None
    )


def _named(title: str) -> str | None:
    """The algorithm that a header's cell names."""
    algorithm = title.strip().lower().replace("-", "").replace("_", "")
    return algorithm if algorithm in HEX_DIGITS else None


def _records(cells: Sequence[str], layout: _Layout, source: ManifestFile, line: int) -> Iterator[Record]:
    name = cells[layout.name]
    size = _size(cells[layout.size].strip(), source, line) if layout.size is not None else None
    found = False
    for column, algorithm in layout.digests.items():
        digest = cells[column].strip()
        if not digest:
            continue
        found = True
        if algorithm is None:
            algorithm = _stated(cells, layout, digest, source, line)
        yield Record(
            line,
            name if layout.ours else name.removeprefix("./"),
            algorithm,
            checked(digest, algorithm, source, line),
            size,
            # The key's version, and as whose bytes: a key that was replaced in an unversioned bucket has two ETags.
            f"{cells[1]}#{cells[2]}" if layout.ours else "",
        )
    if not found:
        raise source.error(line, "the row has no digest: complete it, or take it out")


def _stated(cells: Sequence[str], layout: _Layout, digest: str, source: ManifestFile, line: int) -> str:
    if layout.algorithm is None:
        return algorithm_of(digest, source, line)
    stated = cells[layout.algorithm]
    algorithm = _named(stated)
    if algorithm is None:
        raise source.error(line, f"{stated[:40]!r} is none of {', '.join(HEX_DIGITS)}: the ledger keeps these")
    return algorithm


def _size(text: str, source: ManifestFile, line: int) -> int | None:
    if not text:
        return None
    if not _WHOLE.fullmatch(text):
        raise source.error(line, f"{text[:40]!r} is no size: write bytes as a whole number, or leave the cell empty")
    return int(text)


def is_header(text: str) -> bool:
    """It looks like the header of such a manifest."""
    titles = [title.strip().lower() for title in text.split(_separator(text))]
    return any(title in NAMES for title in titles) and any(title in DIGESTS or _named(title) for title in titles)


TABLE: Final = Form(
    name="csv",
    algorithms=tuple(HEX_DIGITS),
    single=False,
    head=_row(COLUMNS),
    nameable=nameable,
    rows=rows,
    read=read,
)
