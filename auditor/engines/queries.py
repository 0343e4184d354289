"""The query strings of the listings, the same as the SDKs send."""

from __future__ import annotations

from auditor.engines.interface import ListQuery, Position


def listing_query(query: ListQuery, position: Position | None) -> list[tuple[str, str]]:
    """Names and values of ListObjectsV2's or ListObjectVersions' query, not encoded (S3 API reference)."""
    asked = [("encoding-type", "url"), ("max-keys", str(query.page_size)), ("prefix", query.prefix)]
    if query.versions:
        return [*asked, ("versions", ""), *_markers(query, position)]
    asked += [("list-type", "2"), ("fetch-owner", "true")]
    if position is not None:
        asked.append(("continuation-token", position.token or ""))
    elif query.start_after is not None:
        asked.append(("start-after", query.start_after))
    return asked


def _markers(query: ListQuery, position: Position | None) -> list[tuple[str, str]]:
    if position is None:
        return [] if query.start_after is None else [("key-marker", query.start_after)]
    markers = [("key-marker", position.key_marker or "")]
    if position.version_id_marker is not None:
        markers.append(("version-id-marker", position.version_id_marker))
    return markers
