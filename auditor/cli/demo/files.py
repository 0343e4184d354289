"""Choose files for the demo to upload, Python's own sources or the user's, each time the same in the same order."""

from __future__ import annotations

import os
import platform
import stat
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

from auditor.errors import UsageError

MOST_FILES: Final = 500
"""Largest number of files: the demo ends within 90 seconds on two cores."""
ENOUGH_FILES: Final = 450
MOST_BYTES: Final = 64 * 1024 * 1024
LARGEST: Final = 1024 * 1024
"""Largest size of a file, in bytes, because moto holds all files in memory."""

PREFIX: Final = "files/"
_LONGEST_KEY: Final = 1024
_SKIPPED_FOLDERS: Final = frozenset({"site-packages", "dist-packages", "__pycache__", ".git"})


class DemoFile(Struct, frozen=True):
    """A file to upload, and its object key."""

    key: str
    path: Path
    size: int


class Choice(Struct, frozen=True):
    """The files to upload. origin: words for the user on where they come from. left_out: number of files not chosen."""

    sources: tuple[DemoFile, ...]
    origin: str
    left_out: int = 0


def choose(folder: str | None, paths: Mapping[str, str] | None = None) -> Choice:
    """Choose files below `folder`; None: Python's own sources. Raises UsageError if there are none.

    paths: the folders of Python's own sources; None: sysconfig.get_paths().
    """
    if folder is None:
        return _python(paths or sysconfig.get_paths())
    root = Path(folder).expanduser()
    if not root.is_dir():
        raise UsageError(f"--from {folder[:200]!r} is not a directory: name one that holds files")
    picker = _Picker()
    picker.pick(_walk(root, frozenset()), root, PREFIX)
    if not picker.sources:
        raise UsageError(f"--from {folder[:200]!r} holds no files that the demo could load: name another directory")
    return Choice(tuple(picker.sources), f"files from {root.name or root}", picker.left_out)


def _python(paths: Mapping[str, str]) -> Choice:
    """Choose the standard library's files. If they are too few (its tests may be missing), add installed packages."""
    picker = _Picker()
    library = Path(paths["stdlib"])
    picker.pick(_python_sources(library), library, f"{PREFIX}stdlib/")
    version = platform.python_version()
    origin = f"source files of Python {version}'s standard library"
    if len(picker.sources) < ENOUGH_FILES:
        packages = Path(paths["purelib"])
        picker.pick(_python_sources(packages), packages, f"{PREFIX}packages/")
        origin = f"source files of Python {version} and its packages"
    if not picker.sources:
        raise UsageError(f"there are no Python sources in {library}: give files with --from DIR")
    return Choice(tuple(picker.sources), origin)


def _python_sources(root: Path) -> Iterator[Path]:
    return (path for path in _walk(root, _SKIPPED_FOLDERS) if path.suffix == ".py")


def _walk(root: Path, skipped: frozenset[str]) -> Iterator[Path]:
    """Yield every file below root, sorted by name within each folder. Links to folders are not followed. skipped: names
    of folders to leave out.
    """
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in skipped)
        for name in sorted(names):
            yield Path(folder, name)


class _Picker:
    """Picks files until MOST_FILES or MOST_BYTES is reached, and counts the files that are left out."""

    def __init__(self) -> None:
        self.sources: list[DemoFile] = []
        self.left_out = 0
        self._bytes = 0

    def pick(self, paths: Iterable[Path], root: Path, prefix: str) -> None:
        for path in paths:
            if len(self.sources) == MOST_FILES:
                self.left_out += 1
                continue
            self._take(path, prefix + path.relative_to(root).as_posix())

    def _take(self, path: Path, key: str) -> None:
        size = _size(path)
        if size is None or size > LARGEST or self._bytes + size > MOST_BYTES or not _plain(key):
            self.left_out += 1
            return
        self._bytes += size
        self.sources.append(DemoFile(key, path, size))


def _size(path: Path) -> int | None:
    """Return a file's size in bytes; None if it is not a regular file that can be read."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) and os.access(path, os.R_OK) else None


def _plain(key: str) -> bool:
    """True if rule K01 has nothing to find in the object key: an uploaded file must have no finding."""
    return key.isprintable() and "\\" not in key and len(key.encode()) <= _LONGEST_KEY
