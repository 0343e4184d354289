"""Read and write payload manifests of BagIt (RFC 8493).

A line has a digest, spaces, and a path that begins with data/, in which %, CR and LF are escaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from auditor.ledger.base import KeyRecord
from auditor.ledger.manifests.base import OF_TOOLS, Form, ManifestFile, Record, algorithm_of, checked, last_digests

_LINE: Final = re.compile(r"([0-9A-Fa-f]+)[ \t]+\*?(?:\./)?data/(.+)", re.DOTALL)
_FILE: Final = re.compile(r"(tag)?manifest-([a-z0-9]+)\.txt", re.IGNORECASE)
_ESCAPED: Final = re.compile("%(0A|0D|25)", re.IGNORECASE)
_CHARACTERS: Final = {"0A": "\n", "0D": "\r", "25": "%"}


def is_bagit(path: str) -> bool:
    """True if the file has a name that RFC 8493 gives to manifests, such as manifest-sha256.txt."""
    return _FILE.fullmatch(Path(path).name) is not None


def is_tag_manifest(path: str) -> bool:
    """True if the file's name is that of a tag manifest, which lists the bag's own files, not the payload."""
    match = _FILE.fullmatch(Path(path).name)
    return match is not None and match[1] is not None


def nameable(name: str) -> bool:
    """True if a line can hold the name. RFC 8493 has no way to write a NUL, and programs refuse bags with `..` in a
    path.
    """
    return bool(name) and "\0" not in name and ".." not in name.split("/")


def rows(name: str, subject: KeyRecord, algorithms: tuple[str, ...]) -> Iterator[bytes]:
    escaped = name.replace("%", "%25").replace("\n", "%0A").replace("\r", "%0D")
    return (f"{digest}  data/{escaped}\n".encode() for digest in last_digests(subject, algorithms))


def read(source: ManifestFile) -> Iterator[Record]:
    named = _FILE.fullmatch(Path(source.shown).name)
    expected = named[2].lower() if named else None
    for number, line in source.lines():
        text = line.removesuffix("\n").removesuffix("\r")
        if not text:
            continue
        match = _LINE.fullmatch(text)
        if match is None:
            raise source.error(
                number,
                "this is not a line of a BagIt manifest: a digest, spaces, and a path that begins with data/;"
                " if sha256sum or a similar program wrote the file, say --manifest sha256sum",
            )
        algorithm = algorithm_of(match[1], source, number)
        if expected not in (None, algorithm):
            raise source.error(
                number, f"the digest has the length of {algorithm}, but the file's name says {expected}: one is wrong"
            )
        name = _ESCAPED.sub(lambda found: _CHARACTERS[found[1].upper()], match[2])
        yield Record(number, name, algorithm, checked(match[1], algorithm, source, number))


BAGIT: Final = Form(name="bagit", algorithms=OF_TOOLS, single=True, nameable=nameable, rows=rows, read=read)
