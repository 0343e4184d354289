"""Print the answer to a query: as a table, as CSV or as JSON Lines. Texts of the bucket are escaped in each."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import islice
from typing import Any, Final

from auditor.reports.formats.csv_rows import csv_row, neutral
from auditor.text import shorten, visible, width

Printer = Callable[[Sequence[str], Iterable[Sequence[Any]]], Iterator[str]]

ROWS: Final = 1000
"""Largest number of rows of a table: their widths are known only once all are there."""
CELL: Final = 100
"""Largest width of a table's cell; a longer one is cut."""


def as_table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    """Yield the lines of a table: its first ROWS rows. Numbers stand to the right."""
    read = iter(rows)
    first = [list(row) for row in islice(read, ROWS)]
    cells = [[shorten(visible(name), CELL) for name in columns]]
    cells += [[shorten(_shown(value), CELL) for value in row] for row in first]
    right = [
        all(row[place] is None or _is_number(row[place]) for row in first) and bool(first)
        for place in range(len(columns))
    ]
    widths = [max(map(width, column)) for column in zip(*cells, strict=True)]
    for number, line in enumerate(cells):
        yield _line(line, widths, right)
        if not number:
            yield f"{'  '.join('-' * wide for wide in widths)}\n"
    if next(read, None) is not None:
        yield f"and more rows: these are the first {ROWS:,}; --format csv or jsonl has all\n"


def as_csv(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    """Yield the rows of a CSV file. No cell can be run as a formula; null is an empty cell."""
    yield csv_row([neutral(name) for name in columns])
    for row in rows:
        yield csv_row(
            ["" if value is None else str(value) if _is_number(value) else neutral(_text(value)) for value in row]
        )


def as_json_lines(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    """Yield a JSON object for each row, in ASCII. A second column of one name gets a number."""
    names: list[str] = []
    for name in columns:
        again = (f"{name}_{number}" for number in range(2, len(columns) + 2))
        names.append(name if name not in names else next(one for one in again if one not in names))
    for row in rows:
        yield f"{json.dumps(dict(zip(names, map(_plain, row), strict=True)))}\n"


PRINTERS: Final[Mapping[str, Printer]] = {"table": as_table, "csv": as_csv, "jsonl": as_json_lines}


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    padded = []
    for cell, wide, at_right in zip(cells, widths, right, strict=True):
        space = " " * (wide - width(cell))
        padded.append(space + cell if at_right else cell + space)
    return f"{'  '.join(padded).rstrip()}\n"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _shown(value: Any) -> str:
    return "null" if value is None else visible(_text(value))


def _text(value: Any) -> str:
    plain = _plain(value)
    return plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)


def _plain(value: Any) -> Any:
    """Return a value of DuckDB as one of JSON. Numbers that JSON lacks, dates and bytes become texts."""
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, bytes):
        return value.hex()
    return value if value is None or isinstance(value, bool | int | str) else str(value)
