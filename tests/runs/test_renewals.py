"""The files of renewals: read back, and refused if they are no such files."""

from __future__ import annotations

import gzip
import tracemalloc
from pathlib import Path
from typing import Final

import pytest

from auditor.errors import OutputError
from auditor.runs.renewals import read_renewals
from auditor.runs.stores.local import LocalStore

NAME: Final = "20270102T030405Z-0a1b2c.jsonl.gz"


def written(out: Path, data: bytes) -> LocalStore:
    folder = out / "bucket=audited" / "renewals"
    folder.mkdir(parents=True)
    (folder / NAME).write_bytes(data)
    return LocalStore(out)


def test_a_damaged_file_or_line_is_named(tmp_path: Path) -> None:
    texts = ("[]", "{}", "NaN", "[" * 1000, '"', '{"object":9e999}')
    damaged = [b"no gzip", gzip.compress(b"{}", mtime=0)[:-6], *(gzip.compress(text.encode()) for text in texts)]
    for number, data in enumerate(damaged):
        with pytest.raises(OutputError, match=f"renewals/{NAME} is damaged"):
            read_renewals(written(tmp_path / str(number), data), "audited", "")


def test_a_small_file_of_very_many_lines_takes_no_memory(tmp_path: Path) -> None:
    store = written(tmp_path, gzip.compress(b"\n" * 1_000_000))
    tracemalloc.start()
    try:
        with pytest.raises(OutputError, match="is damaged"):
            read_renewals(store, "audited", "")
        assert tracemalloc.get_traced_memory()[1] < 800_000
    finally:
        tracemalloc.stop()
