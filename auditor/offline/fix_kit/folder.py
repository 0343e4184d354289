"""The folder of a kit: it grows under a hidden name, and gets its name when all of its files are complete."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import secrets
import shutil
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, BinaryIO, Final, Self, cast

from auditor.errors import UsageError
from auditor.runs.stores.local import output_errors, private
from auditor.text import visible

_BUFFER: Final = 64 * 1024
_LEVEL: Final = 6


class KitFile:
    """A file of a kit that is being written. md5: lower-case hex of its bytes so far."""

    def __init__(self, file: BinaryIO, place: Path) -> None:
        self._file = file
        self._place = place
        self._digest = hashlib.md5(usedforsecurity=False)
        self.lines = 0

    @property
    def md5(self) -> str:
        return self._digest.hexdigest()

    def write(self, line: bytes) -> None:
        self._digest.update(line)
        self.lines += 1
        with output_errors(self._place):
            self._file.write(line)


class KitFolder:
    """Writes the files of a kit, each with mode 600. keep() gives the folder its name; without it nothing is left.

    Raises UsageError if the folder exists and is not empty, and OutputError if it cannot be written.
    """

    def __init__(self, place: str) -> None:
        self.place = Path(place)
        self._files: dict[str, KitFile] = {}
        self._open = ExitStack()
        shown = visible(place)
        if "://" in place or "\0" in place or not self.place.name:
            raise UsageError(f"--out {shown} cannot be a new directory: give the path of one on this machine")
        with output_errors(shown):
            if self.place.exists() and not (self.place.is_dir() and not any(self.place.iterdir())):
                raise UsageError(f"--out {shown} exists and is not an empty directory: give another one")
            self.place.parent.mkdir(parents=True, exist_ok=True)
            self._growing = self.place.with_name(f".{self.place.name}.{secrets.token_hex(4)}.tmp")
            self._growing.mkdir(mode=0o700)

    @property
    def names(self) -> list[str]:
        """The names of the files, in the order in which they were begun."""
        return list(self._files)

    def file(self, name: str, *, packed: bool = False) -> KitFile:
        """Return a file, which the first call begins. It is complete when the kit is kept. packed: True to compress it
        by gzip: equal lines give equal bytes.
        """
        if name not in self._files:
            file = self._opened(name)
            if packed:
                raw = cast(io.RawIOBase, gzip.GzipFile("", "wb", _LEVEL, file, mtime=0))
                file = self._open.enter_context(io.BufferedWriter(raw, _BUFFER))
            self._files[name] = KitFile(file, self.place / name)
        return self._files[name]

    def _opened(self, name: str) -> BinaryIO:
        with output_errors(self.place / name):
            return self._open.enter_context(open(self._growing / name, "xb", buffering=_BUFFER, opener=private))

    def lines(self, name: str) -> int:
        """Return the number of lines of a file so far; 0 if it is not begun."""
        return self._files[name].lines if name in self._files else 0

    def put(self, name: str, text: str) -> None:
        self.file(name).write(text.encode(errors="surrogatepass"))

    def put_json(self, name: str, value: dict[str, Any]) -> None:
        self.put(name, json.dumps(value, indent=1) + "\n")

    def keep(self) -> None:
        """Close all files, and give the folder its name."""
        with output_errors(self.place):
            self._open.close()
            os.replace(self._growing, self.place)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        with suppress(OSError):
            self._open.close()
        shutil.rmtree(self._growing, ignore_errors=True)
