"""A store in a directory. A file grows under a hidden name, and is renamed when it is complete."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import secrets
from builtins import list as List  # noqa: N812 - the store has a method of that name
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Final, Self

from auditor.errors import OutputError, RunTaken
from auditor.runs.stores.base import PIECE, Change, checked, parsed

_NO_SPACE: Final = "is out of space: free some, or choose another place with --out"
_DENIED: Final = "may not be written: give this user the right to, or choose another place with --out"
_NOT_A_DIRECTORY: Final = "cannot be a directory, a file is in the way: choose another place with --out"
_SENTENCES: Final = {
    errno.ENOSPC: _NO_SPACE,
    errno.EDQUOT: _NO_SPACE,
    errno.EFBIG: "would grow past the largest file allowed here: raise the limit, or choose another place with --out",
    errno.EACCES: _DENIED,
    errno.EPERM: _DENIED,
    errno.EROFS: "lies on a read-only file system: choose another place with --out",
    errno.ENOTDIR: _NOT_A_DIRECTORY,
    errno.EEXIST: _NOT_A_DIRECTORY,
}


def private(path: str, flags: int) -> int:
    """Open a file for open(): a new file can be read and written by its owner only (mode 600)."""
    return os.open(path, flags, 0o600)


@contextmanager
def output_errors(place: str | Path) -> Iterator[None]:
    """Convert an OSError in this `with` block to an OutputError, which names the place and the fix."""
    try:
        yield
    except OSError as error:
        reason = f"cannot be used ({error.strerror or error}): choose another place with --out"
        raise OutputError(f"{place} {_SENTENCES.get(error.errno or 0, reason)}") from error


class LocalStore:
    """A store in the directory `root`, which is created when it is first needed."""

    def __init__(self, root: Path) -> None:
        self._root = root

    @property
    def bucket(self) -> str | None:
        return None

    @property
    def prefix(self) -> str:
        return ""

    def uri(self, path: str = "") -> str:
        return str(self._root / checked(path)) if path else str(self._root)

    def check_writable(self) -> None:
        with output_errors(self._root):
            self._root.mkdir(parents=True, exist_ok=True)
            probe = _hidden(self._root / "probe")
            try:
                probe.write_bytes(b"\n")
            finally:
                with suppress(OSError):
                    probe.unlink(missing_ok=True)

    def put(self, path: str, data: bytes) -> None:
        target = self._place(path)
        with output_errors(target):
            _write(target, data)

    def get(self, path: str) -> bytes | None:
        target = self._root / checked(path)
        with output_errors(target):
            try:
                return target.read_bytes()
            except FileNotFoundError:
                return None

    def stream(self, path: str) -> Iterator[bytes] | None:
        target = self._root / checked(path)
        return _pieces(target) if target.is_file() else None

    def list(self, prefix: str) -> List[str]:
        base = self._root / checked(prefix.rpartition("/")[0]) if "/" in prefix else self._root
        found: List[str] = []
        with output_errors(base):
            for folder, _, names in os.walk(base, onerror=_complain):
                relative = Path(folder).relative_to(self._root)
                found += [(relative / name).as_posix() for name in names if not name.startswith(".")]
        return sorted(path for path in found if path.startswith(prefix))

    def delete(self, path: str) -> None:
        target = self._root / checked(path)
        with output_errors(target):
            target.unlink(missing_ok=True)

    def update_json(self, path: str, change: Change) -> None:
        target = self._place(path)
        with output_errors(target), _locked(target):
            value = change(_read_json(target))
            if value is not None:
                _write(target, json.dumps(value, indent=1).encode() + b"\n")

    def hold(self, folder: str, name: str) -> Callable[[], object]:
        place = self.spool_dir(folder)
        with output_errors(place), ExitStack() as stack:
            lock = stack.enter_context((place / f".{name}.lock").open("wb"))
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise RunTaken(f"{place} is being written by another process: wait for it, or end it") from error
            return stack.pop_all().close

    def spool_dir(self, folder: str) -> Path:
        place = self._root / checked(folder)
        with output_errors(place):
            place.mkdir(parents=True, exist_ok=True)
        return place

    def replace_file(self, path: str, local: Path) -> None:
        target = self._place(path)
        with output_errors(target):
            _commit(local, target)

    def close(self) -> None:
        """Do nothing: a directory needs no closing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _place(self, path: str) -> Path:
        """Return the file's path, and create its directory."""
        target = self._root / checked(path)
        with output_errors(target.parent):
            target.parent.mkdir(parents=True, exist_ok=True)
        return target


def _complain(error: OSError) -> None:
    """Raise the error of os.walk(), unless the directory does not exist.

    A directory that may not be read could have files, so the listing would be incomplete.
    """
    if not isinstance(error, FileNotFoundError):
        raise error


def _pieces(target: Path) -> Iterator[bytes]:
    try:
        with target.open("rb") as file:
            while piece := file.read(PIECE):
                yield piece
    except OSError as error:
        raise OutputError(f"{target} cannot be read ({error.strerror or error}): check the path") from error


def _hidden(target: Path) -> Path:
    return target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")


def _write(target: Path, data: bytes) -> None:
    growing = _hidden(target)
    try:
        with open(growing, "xb", opener=private) as file:
            file.write(data)
        _commit(growing, target)
    finally:
        with suppress(OSError):
            growing.unlink(missing_ok=True)


def _commit(growing: Path, target: Path) -> None:
    """Rename the file `growing` to `target` so that its bytes and its name survive a power cut."""
    _sync(growing)
    os.replace(growing, target)
    _sync(target.parent)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _locked(target: Path) -> Iterator[None]:
    """Lock the file `target` during the `with` block, by a lock file beside it.

    The lock file is never deleted: a process that waits for it, and one that makes a new one, would both get a lock.
    """
    with target.with_name(f".{target.name}.lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _read_json(target: Path) -> dict[str, Any] | None:
    try:
        data = target.read_bytes()
    except FileNotFoundError:
        return None
    return parsed(data, str(target))
