"""The interface of an engine. An engine makes the S3 calls for one bucket, with one attempt for each call."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeVar, runtime_checkable

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
    """A listing. start_after: the object key after which it starts. versions: True for ListObjectVersions, else
    ListObjectsV2.
    """

    prefix: str = ""
    start_after: str | None = None
    versions: bool = False
    page_size: int = 1000


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a listing; object keys are decoded. next: the position of the next page, None on the last one.

    delete_markers: object keys of the delete markers on the page. Only a listing of versions has some.
    """

    refs: tuple[ObjectRef, ...]
    next: Position | None
    delete_markers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Span:
    """A byte range of an object (`Range` of GetObject). first, last: offsets from 0, both included.

    last: None for the end of the object.
    """

    first: int
    last: int | None = None

    def header(self) -> str:
        """Return the value of the Range header."""
        return f"bytes={self.first}-{'' if self.last is None else self.last}"


class Body(Protocol):
    """The bytes of an object, or of a span of it, while they arrive. length: Content-Length. etag: without quotes.

    stored: the checksums of the whole object that S3 stores, by algorithm ("sha256", "crc64nvme"), in lower-case hex,
    without composite ones. For a span it is empty.
    """

    @property
    def length(self) -> int: ...
    @property
    def etag(self) -> str: ...
    @property
    def stored(self) -> Mapping[str, str]: ...
    async def readinto(self, buffer: memoryview) -> int:
        """Fill the buffer from its start with the next bytes, and return their number.

        The number is less than the buffer's length only at the end of the body, and 0 after the end. Raises CallFailed
        if the connection breaks; its `read` is the number of bytes in the buffer then.
        """
        ...


class Engine(Protocol):
    """A client for the calls on one bucket. Each method makes exactly one attempt; it raises CallFailed if that fails.

    AWS calls: ListObjectsV2 and ListObjectVersions (with FetchOwner and EncodingType=url), GetObjectAcl, HeadObject,
    GetObject.
    """

    @property
    def open_connections(self) -> int:
        """Return the number of open connections for ACLs and HEADs; 0 if the engine cannot count them.

        A call on an open connection needs no handshake.
        """
        ...

    def keep_idle(self, connections: int) -> None:
        """Close idle connections until at most `connections` stay open for the next run, if the engine can."""
        ...

    async def list_page(self, query: ListQuery, position: Position | None) -> Page: ...

    async def get_acl(self, key: str, version_id: str | None) -> Acl: ...

    async def head(self, key: str, version_id: str | None, *, checksum: bool) -> Head:
        """Read HeadObject. checksum: send ChecksumMode=ENABLED; for an SSE-KMS object this needs kms:Decrypt."""
        ...

    def get(
        self, key: str, version_id: str | None, etag: str | None, span: Span | None = None
    ) -> AbstractAsyncContextManager[Body]:
        """Open the object, or a span of it. etag: sent as If-Match; S3 answers 412 if the object was overwritten.

        Raises CallFailed with the code InvalidRange for a span beyond the end, Malformed for an unasked span.
        """
        ...


class Questions(Protocol):
    """The questions about one bucket. Each method makes one attempt; it raises CallFailed if that fails."""

    async def head_bucket(self) -> Mapping[str, str]:
        """Return the headers of HeadBucket's answer, by lower-case name."""
        ...

    async def ask(self, action: str) -> Mapping[str, Any]:
        """Return botocore's reply to a question about the bucket, to ListBuckets or to GetCallerIdentity."""
        ...

    async def account_block(self, account: str) -> Mapping[str, Any]:
        """Return botocore's reply to S3 Control's GetPublicAccessBlock."""
        ...


@runtime_checkable
class AskingEngine(Engine, Questions, Protocol):
    """An engine that can ask the questions about its bucket too, if `asks` is true."""

    @property
    def asks(self) -> bool: ...


OpenEngine: TypeAlias = Callable[[K], AbstractAsyncContextManager[Engine]]
"""A function that opens an engine for a K: a Connection, an EngineChoice, or a bucket's name.

It returns a context manager; leaving it closes the engine.
"""

EngineChoice: TypeAlias = tuple[str, Connection]
"""The name of an engine, and the connection to its bucket."""
