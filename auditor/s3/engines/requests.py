"""Build the arguments of each request: the URL query of a listing, and the arguments for botocore."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from auditor.aws.connection import Connection
from auditor.s3.engines.base import ListQuery, Position, Span


def listing_query(query: ListQuery, position: Position | None) -> list[tuple[str, str]]:
    """Return the URL query of a page of a listing: names and values, not encoded. position: None for the first page."""
    pairs = [("encoding-type", "url"), ("max-keys", str(query.page_size)), ("prefix", query.prefix)]
    if query.versions:
        return [*pairs, ("versions", ""), *_markers(query, position)]
    pairs += [("list-type", "2"), ("fetch-owner", "true")]
    if position is not None:
        pairs.append(("continuation-token", position.token or ""))
    elif query.start_after is not None:
        pairs.append(("start-after", query.start_after))
    return pairs


def _markers(query: ListQuery, position: Position | None) -> list[tuple[str, str]]:
    if position is None:
        return [] if query.start_after is None else [("key-marker", query.start_after)]
    markers = [("key-marker", position.key_marker or "")]
    if position.version_id_marker is not None:
        markers.append(("version-id-marker", position.version_id_marker))
    return markers


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


class Requests:
    """Builds botocore's arguments for the calls on one bucket.

    They include ExpectedBucketOwner and RequestPayer if the connection requires these.
    """

    def __init__(self, connection: Connection) -> None:
        self._common: dict[str, Any] = {"Bucket": connection.bucket}
        if connection.expected_owner:
            self._common["ExpectedBucketOwner"] = connection.expected_owner
        if connection.requester_pays:
            self._common["RequestPayer"] = "requester"

    def listing(self, query: ListQuery, position: Position | None) -> tuple[str, dict[str, Any]]:
        """Return the name of botocore's method for a page of a listing, and its arguments.

        position: None for the first page.
        """
        arguments = self._common | {"MaxKeys": query.page_size, "OptionalObjectAttributes": ["RestoreStatus"]}
        arguments |= {_ARGUMENTS[name]: text for name, text in listing_query(query, position) if name in _ARGUMENTS}
        return ("list_object_versions", arguments) if query.versions else ("list_objects_v2", arguments | _FETCH_OWNER)

    def object(self, key: str, version_id: str | None) -> dict[str, Any]:
        arguments = self._common | {"Key": key}
        if version_id is not None:
            arguments["VersionId"] = version_id
        return arguments

    def head(self, key: str, version_id: str | None, checksum: bool) -> dict[str, Any]:
        arguments = self.object(key, version_id)
        if checksum:
            arguments["ChecksumMode"] = "ENABLED"
        return arguments

    def get(self, key: str, version_id: str | None, etag: str | None, span: Span | None) -> dict[str, Any]:
        arguments = self.object(key, version_id)
        if etag is not None:
            arguments["IfMatch"] = f'"{etag}"'
        if span is not None:
            arguments["Range"] = span.header()
        return arguments


LISTING_ACTIONS = {"list_objects_v2": "ListObjectsV2", "list_object_versions": "ListObjectVersions"}
