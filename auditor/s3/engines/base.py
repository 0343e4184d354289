"""The interface of an engine: a client that makes the S3 calls on one bucket, with one attempt for each."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, TypeAlias, TypeVar, runtime_checkable

from msgspec import Struct

from auditor.aws.connection import Connection
from auditor.model.object import Acl, Head, ObjectRef

K = TypeVar("K", bound=Hashable)


class Position(Struct, frozen=True):
    """The place in a listing where the next page begins: ListObjectsV2's token, or ListObjectVersions' two markers."""

    token: str | None = None
    key_marker: str | None = None
    version_id_marker: str | None = None


class ListQuery(Struct, frozen=True):
    """The parameters of a listing.

    start_after: list only keys after this one. versions: True for ListObjectVersions.
    """

    prefix: str = ""
    start_after: str | None = None
    versions: bool = False
    page_size: int = 1000

    @property
    def action(self) -> str:
        """The API operation that lists so."""
        return "ListObjectVersions" if self.versions else "ListObjectsV2"

    def pairs(self, position: Position | None) -> list[tuple[str, str]]:
        """Return the URL query of a page: names and values, not encoded. position: None for the first page."""
        pairs = [("encoding-type", "url"), ("max-keys", str(self.page_size)), ("prefix", self.prefix)]
        if self.versions:
            return [*pairs, ("versions", ""), *self._markers(position)]
        pairs += [("list-type", "2"), ("fetch-owner", "true")]
        if position is not None:
            pairs.append(("continuation-token", position.token or ""))
        elif self.start_after is not None:
            pairs.append(("start-after", self.start_after))
        return pairs

    def _markers(self, position: Position | None) -> list[tuple[str, str]]:
        if position is None:
            return [] if self.start_after is None else [("key-marker", self.start_after)]
        markers = [("key-marker", position.key_marker or "")]
        if position.version_id_marker is not None:
            markers.append(("version-id-marker", position.version_id_marker))
        return markers


class Page(Struct, frozen=True):
    """One page of a listing, with decoded keys. next: where the next page begins; None on the last page.
    delete_markers: the keys of the delete markers on the page; only a listing of versions has any.
    """

    refs: tuple[ObjectRef, ...]
    next: Position | None
    delete_markers: tuple[str, ...] = ()

    @property
    def last(self) -> str:
        """The last key on the page, of an object or a delete marker; "" if the page is empty."""
        return max((*(ref.key for ref in self.refs[-1:]), *self.delete_markers[-1:]), default="")


class Span(Struct, frozen=True):
    """A byte range of an object. first, last: offsets from 0, both included; last is None for the object's end."""

    first: int
    last: int | None = None

    def header(self) -> str:
        """Return the value of the Range header."""
        return f"bytes={self.first}-{'' if self.last is None else self.last}"


class Body(Protocol):
    """The bytes of an object, or of a range of it, while they arrive. length: Content-Length. etag: without quotes.

    stored: S3's checksums of the whole object, by algorithm ("sha256", "crc64nvme"), in lower-case hex; empty for a
    range. Composite checksums, which S3 computes from the checksums of a multipart upload's parts, are left out.
    """

    @property
    def length(self) -> int: ...
    @property
    def etag(self) -> str: ...
    @property
    def stored(self) -> Mapping[str, str]: ...
    async def readinto(self, buffer: memoryview) -> int:
        """Fill the buffer from its start with the next bytes, and return their number.

        The number is less than the buffer's length only at the end of the body, and 0 after that. Raises CallFailed if
        the connection breaks; the error's `read` is the number of bytes in the buffer then.
        """
        ...


class Engine(Protocol):
    """A client for the S3 calls on one bucket. Each method makes one attempt, and raises CallFailed if it fails.

    AWS calls: ListObjectsV2, ListObjectVersions (FetchOwner, EncodingType=url), GetObjectAcl, HeadObject, GetObject.
    """

    @property
    def open_connections(self) -> int:
        """The number of open connections for ACLs and HEADs, which need no handshake; 0 if it is unknown."""
        ...

    def keep_idle(self, connections: int) -> None:
        """Close idle connections until at most `connections` are left for the next run.

        An engine may ignore this call.
        """
        ...

    async def list_page(self, query: ListQuery, position: Position | None) -> Page: ...

    async def get_acl(self, key: str, version_id: str | None) -> Acl: ...

    async def head(self, key: str, version_id: str | None, *, checksum: bool) -> Head:
        """Call HeadObject. checksum: True to ask for S3's checksums, which needs kms:Decrypt for an SSE-KMS object."""
        ...

    def get(
        self, key: str, version_id: str | None, etag: str | None, span: Span | None = None
    ) -> AbstractAsyncContextManager[Body]:
        """Open the body of an object, or of the byte range `span` of it.

        etag: the ETag that the object must have, or S3 answers 412; None for any. span: None for the whole object.
        Raises CallFailed, with the code InvalidRange for a range beyond the object's end, and Malformed if S3 sends
        another range than asked for.
        """
        ...


class Questions(Protocol):
    """The interface of a client that reads a bucket's settings. Each method makes one attempt; it raises CallFailed."""

    async def head_bucket(self) -> Mapping[str, str]:
        """Return the headers of HeadBucket's answer, by lower-case name."""
        ...

    async def ask(self, action: str, token: str | None = None) -> Mapping[str, Any]:
        """Make the call `action`, and return its reply in botocore's form.

        action: ListBuckets, GetCallerIdentity, or a call on the bucket's settings, such as GetBucketAcl. token: the
        ContinuationToken of the page to read, for a call on settings that answers in pages; None for the first page.
        """
        ...

    async def control(self, action: str, account: str, arguments: Mapping[str, str]) -> Mapping[str, Any]:
        """Make the call `action` of S3 Control, and return its reply in botocore's form.

        action: GetPublicAccessBlock, ListAccessPoints, GetAccessPoint, GetAccessPointPolicy,
        GetAccessPointPolicyStatus, ListAccessGrantsInstances, ListAccessGrants or
        GetAccessGrantsInstanceResourcePolicy. account: the account that the call is on.
        arguments: the other parameters, by botocore's name.
        """
        ...


@runtime_checkable
class AskingEngine(Engine, Questions, Protocol):
    """An engine that also has the methods to read a bucket's settings. Call these methods only if `asks` is True."""

    @property
    def asks(self) -> bool: ...


OpenEngine: TypeAlias = Callable[[K], AbstractAsyncContextManager[Engine]]
"""A function that opens an engine for a K: a Connection, an EngineChoice, or a bucket's name.

It returns a context manager; leaving it closes the engine.
"""

EngineChoice: TypeAlias = tuple[str, Connection]
"""The name of an engine, and the connection to its bucket."""
