"""ListObjectsV2 and ListObjectVersions."""

from __future__ import annotations

import base64
import binascii
import bisect
import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple

from tests.support.servers.stub_buckets import xml
from tests.support.servers.stub_calls import Call, Refused, Reply
from tests.support.servers.stub_xml import document, tag, text, timestamp, url_encoded
from tests.support.servers.world import Objects, StubBucket, StubObject, World


class _Entry(NamedTuple):
    item: StubObject
    latest: bool


def list_objects(world: World, bucket: StubBucket, call: Call) -> Reply:
    """One page of the current objects."""
    query, encode = call.query, _encoder(call.query)
    prefix, token, start_after = query.get("prefix", ""), query.get("continuation-token"), query.get("start-after")
    limit = _limit(query)
    after = _from_token(token) if token is not None else start_after
    found: list[StubObject] = []
    for key in _keys(bucket.objects, prefix, after):
        versions = bucket.objects.versions(key)
        if versions and not versions[0].delete_marker:
            found.append(versions[0])
            if len(found) > limit:
                break
    shown = found[:limit]
    cut = len(found) > limit > 0
    owner = query.get("fetch-owner") == "true"
    restores = "RestoreStatus" in call.headers.get("x-amz-optional-object-attributes", "")
    head = (
        f"{tag('Name', bucket.name)}<Prefix>{encode(prefix)}</Prefix>"
        f"{_encoded('StartAfter', start_after, encode)}{tag('ContinuationToken', token)}"
        f"{tag('NextContinuationToken', _to_token(shown[-1].key) if cut else None)}{tag('KeyCount', len(shown))}"
        f"{tag('MaxKeys', limit)}{tag('EncodingType', query.get('encoding-type'))}{tag('IsTruncated', cut)}"
    )
    rows = "".join(
        f"<Contents><Key>{encode(item.key)}</Key>{_facts(item)}{_owner(item) if owner else ''}"
        f"{_restore(item) if restores else ''}</Contents>"
        for item in shown
    )
    return xml(document("ListBucketResult", head + rows))


def list_versions(world: World, bucket: StubBucket, call: Call) -> Reply:
    """One page of all versions and delete markers, each key's newest first."""
    query, encode = call.query, _encoder(call.query)
    prefix, key_marker, version_marker = (
        query.get("prefix", ""),
        query.get("key-marker"),
        query.get("version-id-marker"),
    )
    if version_marker and not key_marker:
        raise Refused(400, "InvalidArgument", "A version-id marker cannot be specified without a key marker.")
    limit = _limit(query)
    found: list[_Entry] = []
    for entry in _entries(bucket.objects, prefix, key_marker, version_marker):
        found.append(entry)
        if len(found) > limit:
            break
    shown, cut = found[:limit], len(found) > limit > 0
    last = shown[-1].item if cut else None
    head = (
        f"{tag('Name', bucket.name)}<Prefix>{encode(prefix)}</Prefix><KeyMarker>{encode(key_marker or '')}</KeyMarker>"
        f"<VersionIdMarker>{text(version_marker or '')}</VersionIdMarker>"
        f"{_encoded('NextKeyMarker', last.key if last else None, encode)}"
        f"{tag('NextVersionIdMarker', (last.version_id or 'null') if last else None)}"
        f"{tag('MaxKeys', limit)}{tag('EncodingType', query.get('encoding-type'))}{tag('IsTruncated', cut)}"
    )
    return xml(document("ListVersionsResult", head + "".join(_version(entry, encode) for entry in shown)))


def _entries(objects: Objects, prefix: str, key_marker: str | None, version_marker: str | None) -> Iterator[_Entry]:
    """In listing order. Without a version marker the whole of the marker's key is passed over."""
    if key_marker and version_marker and key_marker.startswith(prefix):
        versions = [_Entry(item, at == 0) for at, item in enumerate(objects.versions(key_marker))]
        names = [entry.item.version_id or "null" for entry in versions]
        yield from versions[names.index(version_marker) + 1 :] if version_marker in names else ()
    for key in _keys(objects, prefix, key_marker or None):
        for at, item in enumerate(objects.versions(key)):
            yield _Entry(item, at == 0)


def _keys(objects: Objects, prefix: str, after: str | None) -> Iterator[str]:
    """Keys that begin with the prefix, those after `after` only."""
    keys = objects.keys
    at = bisect.bisect_left(keys, prefix)
    if after is not None:
        at = max(at, bisect.bisect_right(keys, after))
    with suppress(IndexError):  # the test may remove keys meanwhile
        while (key := keys[at]).startswith(prefix):
            yield key
            at += 1


def _version(entry: _Entry, encode: Callable[[str], str]) -> str:
    item = entry.item
    name = "DeleteMarker" if item.delete_marker else "Version"
    facts = tag("LastModified", timestamp(item.last_modified)) if item.delete_marker else _facts(item)
    return (
        f"<{name}><Key>{encode(item.key)}</Key>{tag('VersionId', item.version_id or 'null')}"
        f"{tag('IsLatest', entry.latest)}{facts}{_owner(item)}</{name}>"
    )


def _facts(item: StubObject) -> str:
    return (
        f"<LastModified>{timestamp(item.last_modified)}</LastModified><ETag>&quot;{item.etag}&quot;</ETag>"
        f"{_checksums(tuple(item.checksums), item.checksum_type)}"
        f"<Size>{item.size}</Size><StorageClass>{item.storage_class}</StorageClass>"
    )


@functools.lru_cache
def _checksums(algorithms: tuple[str, ...], kind: str | None) -> str:
    return "".join(tag("ChecksumAlgorithm", name) for name in algorithms) + tag("ChecksumType", kind)


def _owner(item: StubObject) -> str:
    return f"<Owner><ID>{item.owner}</ID></Owner>"


def _restore(item: StubObject) -> str:
    if not item.restored:
        return ""
    until = "<RestoreExpiryDate>2030-01-01T00:00:00.000Z</RestoreExpiryDate>"
    return f"<RestoreStatus><IsRestoreInProgress>false</IsRestoreInProgress>{until}</RestoreStatus>"


def _encoder(query: Mapping[str, str]) -> Callable[[str], str]:
    return url_encoded if query.get("encoding-type") == "url" else text


def _encoded(name: str, value: str | None, encode: Callable[[str], str]) -> str:
    return "" if value is None else f"<{name}>{encode(value)}</{name}>"


def _limit(query: Mapping[str, str]) -> int:
    wanted = query.get("max-keys", "1000")
    if not wanted.isdecimal():
        raise Refused(400, "InvalidArgument", "Provided max-keys not an integer or within integer range")
    return min(int(wanted), 1000)


def _to_token(key: str) -> str:
    return base64.b64encode(b"after:" + key.encode()).decode()


def _from_token(token: str) -> str:
    try:
        word, _, key = base64.b64decode(token, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        word = key = ""
    if word != "after":
        raise Refused(400, "InvalidArgument", "The continuation token provided is incorrect")
    return key
