"""A store in a directory. A file grows under a hidden name, and is renamed when it is complete."""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import stat
from builtins import list as List  # noqa: N812 - the store has a method of that name
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final, Self

from auditor.errors import OutputError, RunTaken, UsageError
from auditor.runs.stores.base import PIECE, Change, check_size, checked, json_file, members_of

_NO_SPACE: Final = "is out of space: free some, or choose another place with --out"
_DENIED: Final = "may not be written: give this user the right to, or choose another place with --out"
_NOT_A_DIRECTORY: Final = "cannot be a directory, because a file is in the way: choose another place with --out"
_SENTENCES: Final = {
    errno.ENOSPC: _NO_SPACE,
    errno.EDQUOT: _NO_SPACE,
    errno.EFBIG: "would grow past the largest file allowed here: raise the limit, or choose another place with --out",
    errno.EACCES: _DENIED,
    errno.EPERM: _DENIED,
    errno.EROFS: "is on a read-only file system: choose another place with --out",
    errno.ENOTDIR: _NOT_A_DIRECTORY,
    errno.EEXIST: _NOT_A_DIRECTORY,
    errno.ELOOP: "is a symbolic link, through which the auditor writes nothing: remove it, or choose another --out",
}
_OWN_LINKS: Final = ("/dev/", "/proc/")
"""Where the system's own links are, such as /dev/stdout."""


def private(path: str, flags: int) -> int:
    """Open a file for open(): a new file can be read and written by its owner only (mode 600). A symbolic link is
    refused, unless it is one of the system's own, such as /dev/stdout.
    """
    follow = 0 if path.startswith(_OWN_LINKS) else os.O_NOFOLLOW
    return os.open(path, flags | follow, 0o600)


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

    bucket: str | None = None
    prefix = ""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._made: set[Path] = set()

    def uri(self, path: str = "") -> str:
        return str(self._root / checked(path)) if path else str(self._root)

    def check_writable(self) -> None:
        with output_errors(self._root):
            self._make(self._root)
            probe = _hidden(self._root / "probe")
            try:
                with open(probe, "xb", opener=private) as file:
                    file.write(b"\n")
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
            return _bytes_of(target)

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
            value = change(members_of(_bytes_of(target), str(target)))
            if value is not None:
                _write(target, json_file(value))

    def hold(self, folder: str, name: str) -> Callable[[], object]:
        place = self.spool_dir(folder)
        with output_errors(place), ExitStack() as stack:
            lock = stack.enter_context(_lock_file(place / f".{name}.lock"))
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise RunTaken(f"{place} is being written by another process: wait for it, or end it") from error
            return stack.pop_all().close

    def spool_dir(self, folder: str) -> Path:
        place = self._root / checked(folder)
        with output_errors(place):
            self._make(place)
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
            self._make(target.parent)
        return target

    def _make(self, place: Path) -> None:
        """Create a directory at or below the root. Raises UsageError if every user may exchange the files in it: they
        could plant links, or lines of their own.
        """
        if place in self._made:
            return
        if place != self._root:
            self._make(place.parent)
            if place.is_symlink():
                raise OSError(errno.ELOOP, "a symbolic link")
        place.mkdir(0o775, parents=True, exist_ok=True)
        mode = place.stat().st_mode
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            raise UsageError(
                f"--out {place} may be written by every user of this machine: remove that right with chmod o-w, or"
                " choose a directory below it"
            )
        self._made.add(place)


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


def _lock_file(path: Path) -> BinaryIO:
    """Open a lock file, and leave the bytes of a file that is there as they are."""
    return open(path, "ab", opener=private)


@contextmanager
def _locked(target: Path) -> Iterator[None]:
    """Lock the file `target` during the `with` block, by a lock file beside it.

    The lock file is never deleted: a process that waits for it, and one that makes a new one, would both get a lock.
    """
    with _lock_file(target.with_name(f".{target.name}.lock")) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _bytes_of(target: Path) -> bytes | None:
    """Return the bytes of a regular file; None if it does not exist. A pipe or a device, which may have no end, is
    refused by an OutputError, and no process waits for its other side.
    """
    try:
        file = open(target, "rb", opener=lambda path, flags: os.open(path, flags | os.O_NONBLOCK))  # noqa: SIM115
    except FileNotFoundError:
        return None
    with file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise OutputError(f"{target} is damaged (it is not a regular file): move it away")
        check_size(target.name, found.st_size, str(target))
        return file.read()
