"""A store: a few files below one root, each written whole or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, Protocol, Self, runtime_checkable

from auditor.errors import OutputError
from auditor.model.json_text import JsonError, parse_object

Change = Callable[[dict[str, Any] | None], dict[str, Any] | None]
"""Takes a JSON file's value (None: no such file) and returns the new one (None: leave it). Called once or more."""


class Store(Protocol):
    """Paths are relative, with `/`, and never made from a key. Every failure is errors.OutputError.

    The methods block: call them in a thread.
    """

    @property
    def bucket(self) -> str | None:
        """The bucket that holds the store; None for a directory."""
        ...

    @property
    def prefix(self) -> str:
        """The prefix of every key in the store's bucket: empty, or with `/` at its end; empty for a directory."""
        ...

    def uri(self, path: str = "") -> str: ...

    def check_writable(self) -> None:
        """Raises OutputError when the store cannot be written, or a bucket's files cannot be read back.

        Leaves no file behind.
        """
        ...

    def put(self, path: str, data: bytes) -> None: ...

    def get(self, path: str) -> bytes | None:
        """The whole file; None when it does not exist."""
        ...

    def stream(self, path: str) -> Iterator[bytes] | None:
        """The file's bytes, a MiB at a time; None when it does not exist. In a bucket `path` may be any key."""
        ...

    def list(self, prefix: str) -> list[str]:
        """Every path that begins with `prefix`, sorted, without unfinished files."""
        ...

    def delete(self, path: str) -> None:
        """Remove a file; a file that does not exist is no error."""
        ...

    def update_json(self, path: str, change: Change) -> None:
        """Read, change and write a JSON file, again until nobody wrote in between."""
        ...

    def spool_dir(self, folder: str) -> Path:
        """A local directory for growing files; their names must begin with a dot.

        A directory's is `folder` itself, so that replace_file is one rename.
        """
        ...

    def replace_file(self, path: str, local: Path) -> str | None:
        """Move a file of spool_dir() to `path`, over any file there. 5 GB at most.

        Returns its ETag in the bucket, without quotes; None in a directory.
        """
        ...

    def close(self) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...


@runtime_checkable
class LockingStore(Store, Protocol):
    """A store with locks."""

    def hold(self, folder: str, name: str) -> Callable[[], object]:
        """Lock `name` in this folder; returns the function that unlocks it. The lock ends with this process too.

        Raises RunTaken when another process holds it.
        """
        ...


@runtime_checkable
class ConditionalStore(Store, Protocol):
    """A store that writes on a condition. A file's tag changes with its content; None: the file does not exist."""

    def get_tagged(self, path: str) -> tuple[bytes | None, str | None]:
        """The file and its tag."""
        ...

    def put_if(self, path: str, data: bytes, tag: str | None) -> str | None:
        """Write if the file still has this tag, and return the new tag; None: nothing was written."""
        ...

    def put_new_file(self, path: str, local: Path) -> bool:
        """Move a file of spool_dir() to a `path` without a file. False: another file is there."""
        ...


PIECE: Final = 1024 * 1024
"""Bytes of one piece of a streamed file."""


def checked(path: str) -> str:
    """The path; raises ValueError, a programming error, when it could lead out of the store."""
    if path.startswith("/") or "\0" in path or any(part in {"", ".", ".."} for part in path.split("/")):
        raise ValueError(f"not a path inside a store: {path!r}")
    return path


def parsed(data: bytes, uri: str) -> dict[str, Any]:
    """The JSON object in `data`; raises OutputError, which names `uri`, when there is none."""
    try:
        return parse_object(data, uri)
    except JsonError as error:
        raise OutputError(f"{error}: move it away") from error
