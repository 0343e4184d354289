"""The rows of a CSV file arrive in bounded memory, whatever gzip makes of a small file."""

from __future__ import annotations

import gzip
import tracemalloc
from collections.abc import Iterator
from typing import Final

import pytest

from auditor.errors import InventoryError
from auditor.s3.inventory.rows import LONGEST_LINE, csv_rows

MEBIBYTE: Final = 1024 * 1024


def rows(text: bytes) -> Iterator[list[str]]:
    return csv_rows(iter([gzip.compress(text, 1)]), "s3://reports/a.csv.gz")


def test_row_may_be_as_long_as_the_longest_line() -> None:
    cell = b"x" * 100_000
    line = b",".join([cell] * 10)
    assert len(line) < LONGEST_LINE
    assert list(rows(line + b"\n" + line)) == [[cell.decode()] * 10] * 2


def test_newline_in_quotes_belongs_to_its_row() -> None:
    assert list(rows(b'"a\nb","c"\n"d","e"\n')) == [["a\nb", "c"], ["d", "e"]]


@pytest.mark.parametrize(("begin", "again"), [(b"", b"aa"), (b"", b"a,"), (b'"a\n', b"b\n")])
def test_bomb_is_refused_in_bounded_memory(begin: bytes, again: bytes) -> None:
    packed = gzip.compress(begin + again * 32 * MEBIBYTE, 1)
    found = csv_rows(iter([packed]), "s3://reports/a.csv.gz")
    tracemalloc.start()
    try:
        with pytest.raises(InventoryError, match=r"^s3://reports/a.csv.gz .*, so the report is damaged$"):
            next(found)
        assert tracemalloc.get_traced_memory()[1] < 16 * MEBIBYTE
    finally:
        tracemalloc.stop()
