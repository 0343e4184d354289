"""A store: a few files below one root, each written whole or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from io import BufferedReader
from pathlib import Path
from typing import Any, Final, Protocol, Self, runtime_checkable

from auditor.errors import OutputError
from auditor.model.json_text import JsonError, parse_object

Change = Callable[[dict[str, Any] | None], dict[str, Any] | None]
"""Takes the value of a JSON file (None: there is no file) and returns the new value (None: leave the file as it is). It
is called again if another process wrote the file in between."""


class Store(Protocol):
    """A store of files. Paths are relative, with `/`, and never made from an object key. Every failure is
    errors.OutputError.

    The methods block: call them in a thread.
    """

    @property
    def bucket(self) -> str | None:
        """Return the bucket that holds the store; None for a directory."""
        ...

    @property
    def prefix(self) -> str:
        """Return the prefix of every object key of the store. It is empty, or ends with `/`; it is empty for a
        directory.
        """
        ...

    def uri(self, path: str = "") -> str: ...

    def check_writable(self) -> None:
        """Raise OutputError if the store cannot be written, or if a bucket's files cannot be read back.

        No file is left behind.
        """
        ...

    def put(self, path: str, data: bytes) -> None: ...

    def get(self, path: str) -> bytes | None:
        """Return the whole file; None if it does not exist."""
        ...

    def stream(self, path: str) -> Iterator[bytes] | None:
        """Return the file's bytes, a MiB at a time; None if it does not exist. In a bucket `path` may be any object
        key.
        """
        ...

    def list(self, prefix: str) -> list[str]:
        """Return every path that begins with `prefix`, sorted. Unfinished files are left out."""
        ...

    def delete(self, path: str) -> None:
        """Remove a file. A file that does not exist is no error."""
        ...

    def update_json(self, path: str, change: Change) -> None:
        """Read, change and write a JSON file. Repeat this until no other process wrote in between."""
        ...

    def spool_dir(self, folder: str) -> Path:
        """Return a local directory for growing files. Their names must begin with a dot.

        For a store in a directory it is `folder` itself, so replace_file is one rename.
        """
        ...

    def replace_file(self, path: str, local: Path) -> str | None:
        """Move a file of spool_dir() to `path`; a file there is replaced. The file has 5 GB at most.

        Return its ETag in the bucket, without quotes; None for a directory.
        """
        ...

    def close(self) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...


@runtime_checkable
class LockingStore(Store, Protocol):
    """A store that has locks."""

    def hold(self, folder: str, name: str) -> Callable[[], object]:
        """Lock `name` in this folder, and return the function that unlocks it. The lock ends with this process too.

        Raise RunTaken if another process holds the lock.
        """
        ...


@runtime_checkable
class ConditionalStore(Store, Protocol):
    """A store that writes on a condition. A file's tag changes with its content; None: the file does not exist."""

    def get_tagged(self, path: str) -> tuple[bytes | None, str | None]:
        """Return the file and its tag; two None if the file does not exist."""
        ...

    def put_if(self, path: str, data: bytes, tag: str | None) -> str | None:
        """Write the file if it still has this tag, and return the new tag. Return None if nothing was written."""
        ...

    def put_new_file(self, path: str, local: Path) -> bool:
        """Move a file of spool_dir() to `path` if there is no file. Return False if another file is there."""
        ...


PIECE: Final = 1024 * 1024
"""Bytes of one piece of a streamed file."""
ATTEMPTS: Final = 5
"""Attempts of each call, with the first."""


class BucketObjects(Protocol):
    """The objects of one bucket. The methods block. They raise CallFailed, CredentialsError or UsageError."""

    def get(self, key: str) -> tuple[bytes, str]:
        """Return the object, and its ETag with quotes. Raise CallFailed if there is no object."""
        ...

    def stream(self, key: str) -> Iterator[bytes]:
        """Return the object in pieces. The call itself raises CallFailed if there is no object."""
        ...

    def put(self, key: str, body: bytes | BufferedReader, *, kind: str, md5: str, **condition: str) -> str:
        """Write the object, and return its ETag with quotes. kind: Content-Type. md5: in base64.

        condition: IfMatch or IfNoneMatch.
        """
        ...

    def delete(self, key: str) -> None: ...

    def keys(self, prefix: str) -> Iterator[str]: ...

    def close(self) -> None: ...


def checked(path: str) -> str:
    """Return the path. Raise ValueError, a programming error, if it could lead out of the store."""
    if path.startswith("/") or "\0" in path or any(part in {"", ".", ".."} for part in path.split("/")):
        raise ValueError(f"not a path inside a store: {path!r}")
    return path


def parsed(data: bytes, uri: str) -> dict[str, Any]:
    """Return the JSON object in `data`. Raise OutputError, which names `uri`, if `data` is no JSON object."""
    try:
        return parse_object(data, uri)
    except JsonError as error:
        raise OutputError(f"{error}: move it away") from error
