"""The calls of the SDKs' engines: the arguments of each, and the facts in its reply."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, ClassVar, Final

from auditor.aws.connection import Connection
from auditor.model.object import Acl, Head
from auditor.s3.checksums import CHECKSUM_MODE
from auditor.s3.engines import answers as headers
from auditor.s3.engines import answers as replies
from auditor.s3.engines.base import Body, ListQuery, Page, Position, Span

_ARGUMENTS: Final[Mapping[str, str]] = {
    "encoding-type": "EncodingType",
    "prefix": "Prefix",
    "continuation-token": "ContinuationToken",
    "start-after": "StartAfter",
    "key-marker": "KeyMarker",
    "version-id-marker": "VersionIdMarker",
}
"""By text parameter of a listing's URL query: botocore's name of the argument."""
_FETCH_OWNER: Final = {"FetchOwner": True}


class SdkEngine(ABC):
    """An engine whose calls are made by one client of an SDK, for the whole run.

    encoding: the one by which the SDK decodes an answer's headers.
    """

    encoding: ClassVar[str]

    def __init__(self, connection: Connection, client: Any) -> None:
        self._client = client
        self._common: dict[str, Any] = {"Bucket": connection.bucket}
        if connection.expected_owner:
            self._common["ExpectedBucketOwner"] = connection.expected_owner
        if connection.requester_pays:
            self._common["RequestPayer"] = "requester"

    @abstractmethod
    async def _call(self, action: str, arguments: dict[str, Any]) -> Any:
        """Make the call `action` once, and return botocore's reply. Raises CallFailed."""

    @abstractmethod
    def _body(self, stream: Any, sent: headers.Headers, span: Span | None) -> Body:
        """Make the body of an answer of GetObject. stream: the SDK's. sent: the answer's headers."""

    @abstractmethod
    async def _close(self, stream: Any) -> None:
        """Close the SDK's stream of a body."""

    @property
    def open_connections(self) -> int:
        return 0  # the SDK does not count them

    def keep_idle(self, connections: int) -> None:
        return  # the SDK manages its pool itself

    async def list_page(self, query: ListQuery, position: Position | None) -> Page:
        arguments = self._common | {"MaxKeys": query.page_size, "OptionalObjectAttributes": ["RestoreStatus"]}
        arguments |= {_ARGUMENTS[name]: text for name, text in query.pairs(position) if name in _ARGUMENTS}
        reply = await self._call(query.action, arguments if query.versions else arguments | _FETCH_OWNER)
        return replies.page(query, reply)

    async def get_acl(self, key: str, version_id: str | None) -> Acl:
        return replies.acl("GetObjectAcl", await self._call("GetObjectAcl", self._object(key, version_id)))

    async def head(self, key: str, version_id: str | None, *, checksum: bool) -> Head:
        mode = {"ChecksumMode": "ENABLED"} if checksum else {}
        return headers.head(
            headers_of(await self._call("HeadObject", self._object(key, version_id) | mode), self.encoding)
        )

    @asynccontextmanager
    async def get(
        self, key: str, version_id: str | None, etag: str | None, span: Span | None = None
    ) -> AsyncIterator[Body]:
        arguments = self._object(key, version_id)
        if etag is not None:
            arguments["IfMatch"] = f'"{etag}"'
        if span is not None:
            arguments["Range"] = span.header()
        reply = await self._call("GetObject", arguments)
        try:
            yield self._body(reply["Body"], headers_of(reply, self.encoding), span)
        finally:
            await self._close(reply["Body"])

    def _object(self, key: str, version_id: str | None) -> dict[str, Any]:
        version = {} if version_id is None else {"VersionId": version_id}
        return self._common | {"Key": key} | version


def headers_of(reply: Mapping[str, Any], encoding: str) -> headers.Headers:
    """Return the headers of the answer itself: an older botocore's model leaves out those that it does not know.

    encoding: the one by which the SDK decoded them. The blanks around a value have no meaning (RFC 9110).
    """
    found: dict[str, Any] = {**reply["ResponseMetadata"]["HTTPHeaders"]}
    if "ExpiresString" in reply:  # botocore takes an Expires that is no date out of the headers
        found["expires"] = reply["ExpiresString"]
    return {name.encode(encoding): str(value).strip(" \t").encode(encoding) for name, value in found.items()}


def without_validation(client: Any) -> Any:
    """Let the client ask for the checksums of each whole object that it reads, but not verify them. Return the client.

    With botocore's own setting for this, botocore would also hash each body.
    """
    client.meta.events.register("before-call.s3.GetObject", _ask_for_checksums)
    return client


def _ask_for_checksums(params: dict[str, Any], **_: Any) -> None:
    if "Range" not in params["headers"]:
        name, value = CHECKSUM_MODE
        params["headers"][name] = value
