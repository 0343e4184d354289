"""Write an output file that replaces the file at its path only when it is complete."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Self

from auditor.errors import UsageError
from auditor.runs.stores.local import output_errors, private


class OutFile:
    """An output file that grows under a hidden name until keep().

    Raises OutputError, or UsageError for a wrong path.
    """

    def __init__(self, place: str) -> None:
        self._place = Path(place)
        if "://" in place or (self._place.exists() and not self._place.is_file()):
            raise UsageError(f"--out {place} is not a file: give a path, or leave it out and redirect the output")
        self._growing = self._place.with_name(f".{secrets.token_hex(8)}.tmp")
        with output_errors(self._place):
            self._file = open(self._growing, "xb", opener=private)  # noqa: SIM115 - __exit__() closes it

    def write(self, data: bytes) -> None:
        with output_errors(self._place):
            self._file.write(data)

    def keep(self) -> None:
        """Move the complete file to its path, in place of any file that has this path."""
        with output_errors(self._place):
            self._file.flush()
            os.fsync(self._file.fileno())
            os.replace(self._growing, self._place)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        with suppress(OSError):  # write() has raised the error already
            self._file.close()
        with suppress(FileNotFoundError):
            self._growing.unlink()
