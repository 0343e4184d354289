"""The file parts.json of a run folder, its seal: the digests of its parts and files, and of the previous run."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct, field

from auditor.model.json_codec import JsonError, Size, decode
from auditor.runs.documents import RunFile

NAME: Final = "parts.json"
FILES: Final = ("bucket.json", "report.html", "rollups.json")
"""The files of a run folder, besides the parts, whose digests the seal has. The seal is written before summary.json,
which has the seal's digest."""
OF_RANGES: Final = re.compile(r"plan\.json|(state|parts|keys)-[0-9]{5,}\.json")
"""The names of further such files, of a run that is divided into ranges of keys."""


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
    """The content of parts.json."""

    LINED = "parts"

    previous: Link | None = None
    """The latest complete run of the same target when this run began."""
    files: Mapping[str, str] = field(default_factory=dict)
    """SHA-256 of each of FILES that the run wrote, and of the files of its ranges."""
    parts: tuple[SealedPart, ...] = ()

    def check(self) -> None:
        if not all(name in FILES or OF_RANGES.fullmatch(name) for name in self.files):
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
