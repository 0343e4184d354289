"""Stores that fail: a directory whose disk is full after some writes, and a bucket in memory that refuses writes."""

from __future__ import annotations

import errno
import hashlib
from collections.abc import Callable, Iterator
from io import BufferedReader
from pathlib import Path

from auditor.errors import CallFailed
from auditor.runs.stores.base import Change
from auditor.runs.stores.local import LocalStore, output_errors


class FullStore(LocalStore):
    """A directory whose disk has no space for the Nth write and the later ones, until `room` is set anew.

    room: the number of writes that are left. written: the paths of the writes that were tried.
    """

    def __init__(self, root: Path, room: int) -> None:
        super().__init__(root)
        self.room = room
        self.written: list[str] = []

    def put(self, path: str, data: bytes) -> None:
        self._take(path)
        super().put(path, data)

    def replace_file(self, path: str, local: Path) -> None:
        self._take(path)
        super().replace_file(path, local)

    def update_json(self, path: str, change: Change) -> None:
        self._take(path)
        super().update_json(path, change)

    def _take(self, path: str) -> None:
        self.written.append(path)
        self.room -= 1
        if self.room < 0:
            with output_errors(self.uri(path)):
                raise OSError(errno.ENOSPC, "No space left on device")


class MemoryObjects:
    """The S3 calls on a bucket in memory, which honours conditions. refuses: called with the number of each write and
    its key; True to refuse the write. code, status: of the refusal.
    """

    def __init__(
        self,
        refuses: Callable[[int, str], bool] = lambda number, key: False,
        code: str = "QuotaExceeded",
        status: int = 403,
    ) -> None:
        self._code, self._status = code, status
        self.held: dict[str, bytes] = {}
        self.written: list[str] = []
        self.refuses = refuses

    def get(self, key: str) -> tuple[bytes, str]:
        if key not in self.held:
            raise CallFailed("GetObject", "NoSuchKey", 404)
        return self.held[key], self._tag(key)

    def stream(self, key: str) -> Iterator[bytes]:
        return iter([self.get(key)[0]])

    def put(self, key: str, body: bytes | BufferedReader, *, kind: str, md5: str, **condition: str) -> str:
        known = key in self.held
        wanted = condition.get("IfMatch")
        if wanted and not known:  # as AWS answers
            raise CallFailed("PutObject", "NoSuchKey", 404)
        if (condition.get("IfNoneMatch") and known) or (wanted and self._tag(key) != wanted):
            raise CallFailed("PutObject", "PreconditionFailed", 412)
        self.written.append(key)
        if self.refuses(len(self.written), key):
            raise CallFailed("PutObject", self._code, self._status)
        self.held[key] = body if isinstance(body, bytes) else body.read()
        return self._tag(key)

    def delete(self, key: str) -> None:
        self.held.pop(key, None)

    def keys(self, prefix: str) -> Iterator[str]:
        yield from sorted(key for key in self.held if key.startswith(prefix))

    def close(self) -> None:
        """Do nothing: the bucket stays."""

    def _tag(self, key: str) -> str:
        return f'"{hashlib.md5(self.held[key], usedforsecurity=False).hexdigest()}"'
