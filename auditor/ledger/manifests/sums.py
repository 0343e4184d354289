"""Read and write manifests in the form of GNU coreutils' sha256sum, sha512sum, sha1sum and md5sum, `--tag` lines too.

The syntax of a line: coreutils' src/cksum.c, split_3, bsd_split_3, filename_unescape.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from auditor.ledger.base import KeyRecord
from auditor.ledger.manifests.base import OF_TOOLS, Form, ManifestFile, Record, algorithm_of, checked, last_digests

_LINE: Final = re.compile(r"[ \t]*(\\?)([0-9A-Fa-f]{8,})[ \t](.+)", re.DOTALL)
_TAGGED: Final = re.compile(
    r"[ \t]*(\\?)([A-Za-z][A-Za-z0-9/-]*) ?\((.*)\)[ \t]*=[ \t]*([0-9A-Fa-f]+)[ \t]*", re.DOTALL
)
_ESCAPED: Final = re.compile(r"\\(.?)", re.DOTALL)
_CHARACTERS: Final = {"n": "\n", "r": "\r", "\\": "\\"}
_WANTED: Final = "this is not a line of sha256sum or a similar program: take it out, or name the form with --manifest"


def nameable(name: str) -> bool:
    """True if a line can hold the name. An empty name is not possible, nor a NUL, at which coreutils ends the line."""
    return bool(name) and "\0" not in name


def rows(name: str, subject: KeyRecord, algorithms: tuple[str, ...]) -> Iterator[bytes]:
    return (_line(digest, name) for digest in last_digests(subject, algorithms))


def _line(digest: str, name: str) -> bytes:
    # Tools read "-" as standard input, and our reader removes one leading "./".
    if name == "-" or name.startswith("./"):
        name = f"./{name}"
    escaped = name.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    return f"{'' if escaped == name else chr(92)}{digest}  {escaped}\n".encode()


def read(source: ManifestFile) -> Iterator[Record]:
    spacing = _Spacing(source)
    for number, line in source.lines():
        text = line.removesuffix("\n").removesuffix("\r")
        if not text or text.startswith("#"):
            continue
        if "\0" in text:
            raise source.error(number, "the line contains a NUL byte: write the manifest without --zero")
        if plain := _LINE.fullmatch(text):
            backslash, digest, name = plain[1], plain[2], spacing.name(number, plain[3])
            algorithm = algorithm_of(digest, source, number)
        elif tagged := _TAGGED.fullmatch(text):
            backslash, name, digest = tagged[1], tagged[3], tagged[4]
            algorithm = _tag(tagged[2], source, number)
        else:
            raise source.error(number, _WANTED)
        if backslash:
            name = _unescaped(name, source, number)
        yield Record(number, name.removeprefix("./"), algorithm, checked(digest, algorithm, source, number))


class _Spacing:
    """The number of characters between digest and name in a file: two, or one in the output of BSD's `md5 -r`.

    As in coreutils, the file's first line decides for all lines, because a name may begin with a space.
    """

    def __init__(self, source: ManifestFile) -> None:
        self._source = source
        self._reversed: bool | None = None

    def name(self, line: int, rest: str) -> str:
        """Return the file name in a line.

        line: number of the line. rest: the line's text from the second character after the digest.
        """
        if self._reversed is None:
            if rest in (" ", "*"):
                raise self._source.error(line, f"the line names no file: {_WANTED}")
            self._reversed = rest[0] not in " *"
        if self._reversed:
            return rest
        if len(rest) == 1 or rest[0] not in " *":
            raise self._source.error(line, f"one space before the name, where the lines above have two: {_WANTED}")
        return rest[1:]


def _tag(tag: str, source: ManifestFile, line: int) -> str:
    algorithm = tag.lower().replace("-", "")
    if algorithm not in OF_TOOLS:
        raise source.error(line, f"{tag[:40]} is not one of {', '.join(OF_TOOLS)}: the ledger keeps only these")
    return algorithm


def _unescaped(name: str, source: ManifestFile, line: int) -> str:
    def character(match: re.Match[str]) -> str:
        if match[1] not in _CHARACTERS:
            raise source.error(line, r"a backslash in the name is not followed by \, n or r: write it as \\")
        return _CHARACTERS[match[1]]

    return _ESCAPED.sub(character, name)


SUMS: Final = Form(name="sha256sum", algorithms=OF_TOOLS, single=True, nameable=nameable, rows=rows, read=read)


def is_line(text: str) -> bool:
    """True if the text looks like a line that sha256sum or one of its sister programs has written."""
    return bool(_TAGGED.fullmatch(text) or _LINE.fullmatch(text))
