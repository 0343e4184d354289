"""The file seal.json of a run folder: the digests of its parts and files, and of the previous run."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct, field

from auditor.model.json_codec import JsonError, Size, decode
from auditor.runs.documents import RunFile

NAME: Final = "seal.json"
FILES: Final = ("run.json", "keys.json", "report.html", "rollups.json")
"""The files of a run folder, besides the parts, whose digests the seal has. The seal is written before summary.json,
which has the seal's digest."""


class SealedPart(Struct, frozen=True, kw_only=True):
    """One file of a part, as it was written."""

    path: str
    """The file's path in the run folder."""
    first: str | None
    """Key of its first line; None for a finding on the bucket."""
    last: str | None
    lines: Size
    bytes: Size
    sha256: str
    """Digest of the file's bytes, in hex."""


class Link(Struct, frozen=True):
    """Another run, and the SHA-256 of its summary.json. sha256: None if that run has none."""

    run: str
    sha256: str | None


class Seal(RunFile, frozen=True, kw_only=True):
    """The content of seal.json, or of the seal of one range."""

    LINED = "parts"

    previous: Link | None = None
    """The latest complete run of the same target when this run began."""
    files: Mapping[str, str] = field(default_factory=dict)
    """SHA-256 of each of FILES that the run wrote."""
    parts: tuple[SealedPart, ...] = ()

    def check(self) -> None:
        if any(name not in FILES for name in self.files):
            raise JsonError("names a file that no run has", "files")


def sha256_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def sorted_parts(parts: Iterable[SealedPart]) -> tuple[SealedPart, ...]:
    """Return the parts in the order of their paths, one for each path: the last one given."""
    found = {part.path: part for part in parts}
    return tuple(found[path] for path in sorted(found))


def key_of(line: bytes) -> str | None:
    """Return the key in a line of a part. Raises JsonError if the line is none."""
    return decode(_Keyed, line).key


class _Keyed(Struct, frozen=True):
    key: str | None = None
