"""The tools of the engine suite: the bucket that a check fills, and ways to read it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, Protocol

from auditor.errors import CallFailed
from auditor.model.object import Acl, ObjectRef
from auditor.s3.engines.base import Body, Engine, ListQuery, Position, Span

STRANGER: Final = "b1" * 32
"""The canonical ID of another account."""

ODD_KEYS: Final[Mapping[str, str]] = {
    "space": "a key with spaces",
    "trailing space": "trailing space ",
    "leading space": " leading space",
    "plus": "a+b",
    "plus and space": "a + b+ c",
    "percent": "100%",
    "percent escape": "%41",
    "percent escape of a plus": "a%2Bb c",
    "question mark": "what?now=1",
    "hash": "page#part",
    "ampersand": "a=b&c=d",
    "semicolon and colon": "a;b:c@d,e$f",
    "nfc": "caf\u00e9",
    "nfd": "cafe\u0301",
    "emoji": "\U0001f4e6/\U0001f469\u200d\U0001f52c.png",
    "beyond the bmp": "\U00010348",
    "newline": "line one\nline two",
    "carriage return": "line one\rline two",
    "both line ends": "one\r\ntwo",
    "tab": "a\tb",
    "control": "a\x01b\x1bc",
    "delete": "a\x7fb",
    "double slash": "a//b",
    "leading slash": "/leading",
    "trailing slash": "folder/",
    "two leading slashes": "//host/share",
    "parent": "../up",
    "parent inside": "a/../b",
    "only a dot": ".",
    "dot segment": "a/./b",
    "only two dots": "..",
    "backslash": "a\\b",
    "double quote": 'say "x"',
    "single quote": "it's",
    "markup": "<script>alert(1)</script>",
    "entity": "a&amp;b&#10;c",
    "formula": "=cmd()",
    "right to left": "\u202egpj.exe",
    "separator": "a\u2028b",
    "byte order mark": "\ufeffa",
    "braces and bars": "{a}|[b]^`c`~*",
    "longest": "\u20ac" * 341 + "x",
}
"""Keys by the name of their oddity; the longest key has S3's limit of 1,024 bytes of UTF-8."""


class StoredVersion(Protocol):
    """An object version that a world stored. etag: without quotes. version_id: None if the bucket keeps no versions."""

    @property
    def etag(self) -> str: ...
    @property
    def version_id(self) -> str | None: ...


class EngineWorld(Protocol):
    """A bucket that is empty at first. owner: the canonical ID of its owner, who owns every object by default."""

    @property
    def owner(self) -> str: ...

    def open(self) -> AbstractAsyncContextManager[Engine]:
        """Open an engine for the bucket, with at least two connections. The end of the `with` block closes it."""
        ...

    def put(self, key: str, body: bytes = b"", *, acl: Acl | None = None, **members: Any) -> StoredVersion:
        """Store an object. acl: None: the owner has FULL_CONTROL. members: fields that the Head must have."""
        ...

    def delete(self, key: str) -> None:
        """Delete the object. If versions are kept, a delete marker becomes its latest version."""
        ...

    def keep_versions(self) -> None:
        """Turn versioning on."""
        ...


async def read(engine: Engine, key: str, size: int = 65536) -> bytes:
    """Return the bytes of an object, read `size` bytes at a time."""
    async with engine.get(key, None, None) as body:
        return b"".join([piece async for piece in pieces(body, size)])


async def pieces(body: Body, size: int) -> AsyncIterator[bytes]:
    """Yield the rest of the body in pieces of `size` bytes; the last piece may be shorter."""
    buffer = memoryview(bytearray(size))
    while count := await body.readinto(buffer):
        yield bytes(buffer[:count])


async def list_all(engine: Engine, query: ListQuery) -> tuple[list[ObjectRef], list[str], int]:
    """Return the listed refs, the keys of delete markers, and the number of pages."""
    refs: list[ObjectRef] = []
    markers: list[str] = []
    position: Position | None = None
    for count in range(1, 1000):
        page = await engine.list_page(query, position)
        refs += page.refs
        markers += page.delete_markers
        if page.next is None:
            return refs, markers, count
        position = page.next
    raise AssertionError("the listing has no end")


async def failure_of(engine: Engine, call: Callable[[Engine], Awaitable[object]]) -> CallFailed:
    """Return the failure of a call that must fail."""
    try:
        await call(engine)
    except CallFailed as failure:
        return failure
    raise AssertionError("the call did not fail")


async def opened(engine: Engine, key: str, etag: str | None, span: Span | None = None) -> None:
    """Open a body, and read none of it."""
    async with engine.get(key, None, etag, span):
        pass


def same(found: object, wanted: object) -> None:
    if found != wanted:
        raise AssertionError(f"found {found!r}, wanted {wanted!r}")


EngineCheck = Callable[[EngineWorld], Awaitable[None]]
"""Checks one promise of an engine in an empty world; raises AssertionError if the engine breaks the promise."""
