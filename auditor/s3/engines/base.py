"""The interface of an engine: the client that makes S3's calls for one bucket, one attempt each."""

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
    """The start of the next page: ListObjectsV2's continuation token, or ListObjectVersions' two markers."""

    token: str | None = None
    key_marker: str | None = None
    version_id_marker: str | None = None


@dataclass(frozen=True, slots=True)
class ListQuery:
    """A listing. start_after: a whole key, exclusive. versions: ListObjectVersions instead of ListObjectsV2."""

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
    """The bytes of an object, or of a span of it, as they arrive. length: Content-Length. etag: without quotes.

    stored: S3's own checksums of the whole object, by algorithm ("sha256", "crc64nvme"), lower-case hex; no composite
    ones. Empty with a span.
    """

    @property
    def length(self) -> int: ...
    @property
    def etag(self) -> str: ...
    @property
    def stored(self) -> Mapping[str, str]: ...
    async def readinto(self, buffer: memoryview) -> int:
        """Fill the buffer from its start with the next bytes, and return their number.

        The number is less than the buffer's length at the body's end only, and 0 after it. Raises CallFailed when the
        connection breaks; the buffer then has `CallFailed.read` bytes.
        """
        ...


class Engine(Protocol):
    """One bucket's calls. Every method makes exactly one attempt and raises errors.CallFailed when it fails.

    AWS: ListObjectsV2 and ListObjectVersions (with FetchOwner and EncodingType=url), GetObjectAcl, HeadObject,
    GetObject.
    """

    @property
    def open_connections(self) -> int:
        """Open connections for ACLs and HEADs, which need no handshake; 0 where the engine cannot count them."""
        ...

    def keep_idle(self, connections: int) -> None:
        """Leave at most so many connections open for the next run, where the engine can."""
        ...

    async def list_page(self, query: ListQuery, position: Position | None) -> Page: ...

    async def get_acl(self, key: str, version_id: str | None) -> Acl: ...

    async def head(self, key: str, version_id: str | None, *, checksum: bool) -> Head:
        """checksum: send ChecksumMode=ENABLED; on an SSE-KMS object that needs kms:Decrypt."""
        ...

    def get(
        self, key: str, version_id: str | None, etag: str | None, span: Span | None = None
    ) -> AbstractAsyncContextManager[Body]:
        """The object, or a span of it. etag: sent as If-Match; S3 answers 412 where the object was overwritten.

        A span beyond the object's end fails with InvalidRange, an answer with another span as Malformed.
        """
        ...


OpenEngine: TypeAlias = Callable[[K], AbstractAsyncContextManager[Engine]]
"""Opens an engine for one K: a Connection, an EngineChoice, or a bucket's name. Leaving the context closes it."""

EngineChoice: TypeAlias = tuple[str, Connection]
"""The name of an engine, and the bucket that it is to reach."""
