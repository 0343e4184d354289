"""Read the rows of the data files of an S3 Inventory report, and check the bytes of each file."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, Final

from auditor.audit.mixed.parquet_rows import check_parquet, parquet_rows
from auditor.errors import InventoryError, OutputError, RunStopped
from auditor.runs.stores.base import Store
from auditor.s3.inventory.csv_rows import csv_rows
from auditor.s3.inventory.fields import PARQUET
from auditor.s3.inventory.report import InventoryFile, InventoryReport

_CHECK_EVERY: Final = 4096
"""Number of rows after which the reading looks if it is to stop."""


def check_files(report: InventoryReport, path: str, name: str) -> None:
    """Raise InventoryError if a report names a file outside the folder of its configuration, two levels above its
    manifest. path: of the manifest. name: its URI.
    """
    configuration = path.rpartition("/")[0].rpartition("/")[0]
    above = configuration.rpartition("/")[0]
    if above and not all(file.key.startswith(f"{above}/") for file in report.files):
        raise InventoryError(f"{name} names a file outside its folder, so it is damaged")


def rows_of(store: Store, file: InventoryFile, report: InventoryReport, stopped: Callable[[], bool]) -> Iterator[Any]:
    """Yield the rows of a data file. Raises InventoryError, at its end too, if its bytes are not those that the
    manifest names, and RunStopped once `stopped` returns True.
    """
    for number, row in enumerate(_rows(store, file, report)):
        if not number % _CHECK_EVERY and stopped():
            raise RunStopped("the audit was stopped while it read the inventory report: nothing was audited; run again")
        yield row


def _rows(store: Store, file: InventoryFile, report: InventoryReport) -> Iterator[Any]:
    name = store.uri(file.key)
    pieces = store.stream(file.key)
    if pieces is None:
        raise InventoryError(f"{name} does not exist, so the report is incomplete")
    checked = _Checked(pieces, file, name)
    if report.form == PARQUET:
        yield from _parquet(checked, report, name)
    else:
        yield from csv_rows(iter(checked), name)
        checked.finish()


def _parquet(checked: _Checked, report: InventoryReport, name: str) -> Iterator[tuple[str, ...]]:
    """Yield the rows of a Parquet file, which is read from a copy: its footer is at its end."""
    check_parquet()
    try:
        copy = NamedTemporaryFile(prefix="auditor-", suffix=".parquet")  # noqa: SIM115 - closed below
    except OSError as error:
        raise _no_room(error) from error
    with copy:
        for piece in checked:
            try:
                copy.write(piece)
            except OSError as error:
                raise _no_room(error) from error
        copy.flush()
        checked.finish()
        yield from parquet_rows(Path(copy.name), report.columns, name)


def _no_room(error: OSError) -> OutputError:
    return OutputError(
        f"a temporary file for the inventory cannot be written ({os.strerror(error.errno or 0)}): free some space, or"
        " set TMPDIR"
    )


class _Checked:
    """The bytes of a data file. finish() raises InventoryError if they are not those that the manifest names."""

    def __init__(self, pieces: Iterator[bytes], file: InventoryFile, name: str) -> None:
        self._pieces = pieces
        self._file = file
        self._name = name
        self._digest = hashlib.md5(usedforsecurity=False)

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._pieces:
            self._digest.update(piece)
            yield piece

    def finish(self) -> None:
        for piece in self._pieces:
            self._digest.update(piece)
        if self._digest.hexdigest() != self._file.md5:
            raise InventoryError(f"{self._name} does not match the MD5 in its manifest, so the report is damaged")
