"""What an engine is: the client that makes the calls, one attempt each, for one bucket."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypeVar

from auditor.aws.connection import Connection
from auditor.model.object import Acl, Head, ObjectRef

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Position:
    """Where the next page starts: ListObjectsV2's continuation token, or ListObjectVersions' two markers."""

    token: str | None = None
    key_marker: str | None = None
    version_id_marker: str | None = None


@dataclass(frozen=True, slots=True)
class ListQuery:
    """What to list. start_after: whole key, exclusive. versions: ListObjectVersions instead of ListObjectsV2."""

    prefix: str = ""
    start_after: str | None = None
    versions: bool = False
    page_size: int = 1000


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a listing, keys decoded and in order. next: None on the last page.

    delete_markers: keys of the delete markers on the page (versions only), in order.
    """

    refs: tuple[ObjectRef, ...]
    next: Position | None
    delete_markers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Span:
    """Bytes of an object, both ends included, from 0; last None: to its end (`Range` of GetObject)."""

    first: int
    last: int | None = None

    def header(self) -> str:
        return f"bytes={self.first}-{'' if self.last is None else self.last}"


class Body(Protocol):
    """An object's bytes, or a span of them, on their way. length: Content-Length, bytes. etag: without quotes.

    stored: digests of the whole object that S3 keeps and told with the answer, algorithm ("sha256", "crc64nvme") to
    lower-case hex; composite ones are none. Empty with a span.
    """

    @property
    def length(self) -> int: ...
    @property
    def etag(self) -> str: ...
    @property
    def stored(self) -> Mapping[str, str]: ...
    async def readinto(self, buffer: memoryview) -> int:
        """Fill the buffer from its start with what comes next; returns how many bytes it has now.

        Fewer than its length only where the body ends, 0 when nothing is left. Raises CallFailed when the connection
        breaks; bytes that had come by then are in the buffer, and `CallFailed.read` says how many.
        """
        ...


class Engine(Protocol):
    """One bucket's calls. Every method makes exactly one attempt and raises errors.CallFailed when it fails.

    AWS: ListObjectsV2 and ListObjectVersions (with FetchOwner and EncodingType=url), GetObjectAcl, HeadObject,
    GetObject.
    """

    @property
    def open_connections(self) -> int:
        """That stand open for ACLs and HEADs, and need no handshake; 0 where that cannot be told."""
        ...

    def keep_idle(self, connections: int) -> None:
        """Leave at most so many of them open for the next run, where that can be said."""
        ...

    async def list_page(self, query: ListQuery, position: Position | None) -> Page: ...

    async def get_acl(self, key: str, version_id: str | None) -> Acl: ...

    async def head(self, key: str, version_id: str | None, *, checksum: bool) -> Head:
        """checksum: send ChecksumMode=ENABLED; on an SSE-KMS object that needs kms:Decrypt."""
        ...

    def get(
        self, key: str, version_id: str | None, etag: str | None, span: Span | None = None
    ) -> AbstractAsyncContextManager[Body]:
        """The object, or a span of it: VersionId when given, and If-Match when `etag` is given (412 when it was
        overwritten). A span beyond the object's end fails with InvalidRange, and an answer that is another span's is
        Malformed."""
        ...


OpenEngine: TypeAlias = Callable[[K], AbstractAsyncContextManager[Engine]]
"""Opens an engine for one K: a Connection, an EngineChoice, or a bucket's name. Leaving the context closes it."""

EngineChoice: TypeAlias = tuple[str, Connection]
"""The name of an engine, and the bucket that it is to reach."""
