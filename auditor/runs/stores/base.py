"""What a store is: a few files, each written whole or not at all, below one root."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self, runtime_checkable

from auditor.errors import OutputError

Change = Callable[[dict[str, Any] | None], dict[str, Any] | None]
"""Gets a JSON file's value (None: no such file), gives the new one (None: leave it). May be called several times."""


class Store(Protocol):
    """Paths are relative, with `/`, and made by us, never from a key. Every failure is errors.OutputError.

    The methods block: call them in a thread.
    """

    @property
    def bucket(self) -> str | None:
        """The bucket that holds the store; None for a local one."""
        ...

    @property
    def prefix(self) -> str:
        """What every key of the store's bucket begins with: empty, or ending in `/`; empty for a local one."""
        ...

    def uri(self, path: str = "") -> str: ...

    def check_writable(self) -> None:
        """Raises OutputError when nothing could be written here, or a bucket's files not be read back.

        Leaves nothing but the root directory behind.
        """
        ...

    def put(self, path: str, data: bytes) -> None: ...

    def get(self, path: str) -> bytes | None:
        """The whole file; None where there is none."""
        ...

    def list(self, prefix: str) -> list[str]:
        """Every path that begins with `prefix`, sorted; unfinished files are not among them."""
        ...

    def delete(self, path: str) -> None:
        """Remove a file of ours; no file is no error."""
        ...

    def update_json(self, path: str, change: Change) -> None:
        """Read, change, write, again until nobody wrote in between."""
        ...

    def spool_dir(self, folder: str) -> Path:
        """A local directory for files that are still growing; their names must begin with a dot.

        Of a local store it is `folder` itself, so that put_file is one rename.
        """
        ...

    def replace_file(self, path: str, local: Path) -> str | None:
        """Move a file of spool_dir() into its place, whatever is there; `local` is gone afterwards. 5 GB at most.

        Its ETag in the bucket, without quotes; None for a local one.
        """
        ...

    def close(self) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


@runtime_checkable
class LockingStore(Store, Protocol):
    """A store that can keep other processes out."""

    def put_file(self, path: str, local: Path) -> None:
        """Move a file of spool_dir() into its place; `local` is gone afterwards."""
        ...

    def hold(self, folder: str, name: str) -> Callable[[], object]:
        """Keep other processes from `name` in this folder, until the result is called or this process ends, however it
        ends. Raises RunTaken when one has it.
        """
        ...


@runtime_checkable
class ConditionalStore(Store, Protocol):
    """A store that can write on a condition. A tag changes with each write of its file; None: there is no file."""

    def get_tagged(self, path: str) -> tuple[bytes | None, str | None]: ...

    def put_if(self, path: str, data: bytes, tag: str | None) -> str | None:
        """Write if the file is still as `tag` says; the new tag. None: it is not, and nothing was written."""
        ...

    def put_new_file(self, path: str, local: Path) -> bool:
        """Move a file of spool_dir() to where none is yet; `local` is gone then. False: another one is there."""
        ...


def checked(path: str) -> str:
    """`path`, unless it could lead out of the store: then a programming error."""
    if path.startswith("/") or "\0" in path or any(part in {"", ".", ".."} for part in path.split("/")):
        raise ValueError(f"not a path inside a store: {path!r}")
    return path


def parsed(data: bytes, uri: str) -> dict[str, Any]:
    """The JSON object in `data`; raises OutputError naming `uri` when there is none."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise OutputError(f"{uri} is not JSON: move it away") from error
    if not isinstance(value, dict):
        raise OutputError(f"{uri} is not a JSON object: move it away")
    return value
