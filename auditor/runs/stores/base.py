"""The interface of a store: files below one root, each written as a whole or not at all."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from io import BufferedReader
from pathlib import Path
from typing import Any, Final, Protocol, Self, runtime_checkable

from auditor.errors import OutputError
from auditor.model.json_codec import JsonError, OldFormatError, document, parse_document

Change = Callable[[dict[str, Any] | None], dict[str, Any] | None]
"""A function that changes a JSON file. It gets the file's members besides `format` (None if there is no file, or if a
development version wrote it), and returns the new members (None to leave the file as it is). It is called again if
another process wrote the file in between."""


class Store(Protocol):
    """A store of files. Its paths are relative, with `/`, and never made from an object key. All methods block.

    Every failure is an errors.OutputError.
    """

    @property
    def bucket(self) -> str | None:
        """The bucket of the store; None for a directory."""
        ...

    @property
    def prefix(self) -> str:
        """The prefix of all object keys of the store, with `/` at its end; "" for none, and for a directory."""
        ...

    def uri(self, path: str = "") -> str: ...

    def check_writable(self) -> None:
        """Raise OutputError if the store cannot be written, or if files in its bucket cannot be read back.

        The check leaves no file behind.
        """
        ...

    def put(self, path: str, data: bytes) -> None: ...

    def get(self, path: str) -> bytes | None:
        """Return the whole file; None if it does not exist. A file that is too large is an error."""
        ...

    def stream(self, path: str) -> Iterator[bytes] | None:
        """Return the file's bytes, a MiB at a time; None if it does not exist. In a bucket, `path` may be any key."""
        ...

    def list(self, prefix: str) -> list[str]:
        """Return all paths that begin with `prefix`, sorted. Files that still grow are left out."""
        ...

    def delete(self, path: str) -> None:
        """Delete a file. It is no error if the file does not exist."""
        ...

    def update_json(self, path: str, change: Change) -> None:
        """Read a JSON file, and write what `change` makes of it.

        If another process writes the file in between, read the file and call `change` again.
        """
        ...

    def spool_dir(self, folder: str) -> Path:
        """Return a local directory for files that grow until replace_file() or put_new_file() moves them to `folder`.

        The names of these files must begin with a dot. In a directory store this is `folder` itself, so that
        replace_file() only renames.
        """
        ...

    def replace_file(self, path: str, local: Path) -> str | None:
        """Move a file of spool_dir(), of 5 GB at most, to `path`, in place of any file that has this path.

        Return the new ETag, without quotes; None in a directory.
        """
        ...

    def close(self) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...


@runtime_checkable
class LockingStore(Store, Protocol):
    """A store that can lock: a directory."""

    def hold(self, folder: str, name: str) -> Callable[[], object]:
        """Lock `name` in this folder, and return the function that unlocks it. The lock also ends with this process.

        Raises RunTaken if another process holds the lock.
        """
        ...


@runtime_checkable
class ConditionalStore(Store, Protocol):
    """A store that can write a file on the condition that it is unchanged: a bucket.

    The condition is the file's tag, which changes with the content. For a file that does not exist, the tag is None.
    """

    def get_tagged(self, path: str) -> tuple[bytes | None, str | None]:
        """Return the file's bytes and its tag; (None, None) if it does not exist."""
        ...

    def put_if(self, path: str, data: bytes, tag: str | None) -> str | None:
        """Write the file if it still has the tag `tag` (None: if it does not exist), and return its new tag.

        Return None, and write nothing, if the file has another tag.
        """
        ...

    def put_new_file(self, path: str, local: Path) -> bool:
        """Move a file of spool_dir() to `path`, if no file has this path yet. Return False if another file has it."""
        ...


LARGEST_FILE: Final = 64 * 1024 * 1024
"""Limit in bytes of a file that is read as a whole. A part of 50,000 lines has some 10 MB."""
_LARGEST_JSON: Final = 16 * 1024 * 1024
_SEAL: Final = "parts"
"""The beginning of the names of the only JSON files that may be larger: a seal has a line for each part."""
PIECE: Final = 1024 * 1024
"""Bytes of one piece of a streamed file."""
ATTEMPTS: Final = 8
"""Attempts of each call, with the first. Of a bucket that refuses 30 of 100 calls, one call in 15,000 fails."""


class BucketObjects(Protocol):
    """The interface of an object that makes a store's S3 calls on one bucket.

    Its methods block, and raise CallFailed, CredentialsError or UsageError.
    """

    def get(self, key: str) -> tuple[bytes, str]:
        """Return an object's bytes, and its ETag with quotes. Raises CallFailed if it does not exist."""
        ...

    def stream(self, key: str) -> Iterator[bytes]:
        """Return an iterator of an object's bytes. The call itself raises CallFailed if the object does not exist."""
        ...

    def put(self, key: str, body: bytes | BufferedReader, *, kind: str, md5: str, **condition: str) -> str:
        """Write an object, and return its ETag with quotes. kind: Content-Type. md5: of the body, in base64.

        condition: write only if the object has this ETag (IfMatch="ETAG"), or if it does not exist (IfNoneMatch="*").
        """
        ...

    def delete(self, key: str) -> None: ...

    def keys(self, prefix: str) -> Iterator[str]: ...

    def close(self) -> None: ...


_TYPES: Final = {".json": "application/json", ".html": "text/html; charset=utf-8", ".gz": "application/gzip"}


def checked(path: str) -> str:
    """Return the path. Raises ValueError, which only a bug can cause, if the path could lead out of the store."""
    if path.startswith("/") or "\0" in path or any(part in {"", ".", ".."} for part in path.split("/")):
        raise ValueError(f"not a path inside a store: {path!r}")
    return path


def check_size(path: str, size: int, uri: str) -> None:
    """Raise OutputError for a file that is too large to be read as a whole. size: in bytes."""
    name = path.rpartition("/")[2]
    most = _LARGEST_JSON if name.endswith(".json") and not name.startswith(_SEAL) else LARGEST_FILE
    if size > most:
        raise OutputError(f"{uri} is damaged: it is larger than {most // 1024**2} MiB, and no such file is")


def members_of(data: bytes | None, uri: str) -> dict[str, Any] | None:
    """Return the members of a JSON file besides its format; None for no file, and for one of a development version,
    which is not read. Raises OutputError, which names `uri`, for a damaged file.
    """
    try:
        return None if data is None else parse_document(data)
    except OldFormatError:
        return None
    except JsonError as error:
        raise OutputError(f"{uri} is damaged ({error}): move it away") from error


def json_file(members: Mapping[str, Any]) -> bytes:
    """Return the bytes of a JSON file. members: those besides its format."""
    return json.dumps(document(members), indent=1).encode() + b"\n"


def md5_of(body: bytes | BufferedReader) -> str:
    """Return the MD5 of the whole body, in base64. A body that is a file is rewound."""
    if isinstance(body, bytes):
        digest = hashlib.md5(body, usedforsecurity=False).digest()
    else:
        body.seek(0)
        digest = hashlib.file_digest(body, lambda: hashlib.md5(usedforsecurity=False)).digest()
        body.seek(0)
    return base64.b64encode(digest).decode()


def content_type(path: str) -> str:
    """Return the Content-Type of a file."""
    return _TYPES.get(Path(path).suffix, "application/octet-stream")
