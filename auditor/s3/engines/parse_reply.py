"""Parse botocore's replies into facts. The functions raise CallFailed (Malformed) if a needed element is missing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final
from urllib.parse import unquote_plus

from auditor.errors import CallFailed
from auditor.model.dates import seconds_in_utc
from auditor.model.object import ALL_USERS, Acl, Grant, ObjectRef
from auditor.s3.engines.base import ListQuery, Page, Position
from auditor.s3.engines.parse_headers import unquoted

Reply = Mapping[str, Any]

PERMISSIONS: Final = frozenset({"READ", "WRITE", "READ_ACP", "WRITE_ACP", "FULL_CONTROL"})
"""All permissions of a grant (Grant, S3 API reference)."""


_GROUPS: Final = {"all-users": ALL_USERS}
"""Groups that one other server (versitygw) names by an ID, not by a URI: the URI by the ID. AWS has no canonical ID of
this form."""


def iso(moment: Any) -> str:
    """Return a date as ISO 8601 text in UTC, to the second. moment: a datetime; a text is returned as it is."""
    return seconds_in_utc(moment) if isinstance(moment, datetime) else str(moment)


def required(action: str, reply: Reply, *names: str) -> Any:
    """Return an element of the reply. Raises CallFailed with the code Malformed if the reply lacks it.

    names: of the element, after those of the elements around it.
    """
    value: Any = reply
    for name in names:
        value = value.get(name)
        if value is None:
            raise CallFailed(action, "Malformed", 200, f"{name} is missing")
    return value


def acl(action: str, reply: Reply) -> Acl:
    """Parse a reply of GetObjectAcl or GetBucketAcl: `Owner.ID`, and `Grants`, each with a grantee and a permission.

    Blanks around a value are removed: some servers indent their XML, and the URI of AllUsers has to be recognised.
    """
    owner = required(action, reply, "Owner", "ID")
    return Acl(str(owner).strip(), tuple(_grant(action, grant) for grant in required(action, reply, "Grants")))


def _grant(action: str, grant: Reply) -> Grant:
    grantee = required(action, grant, "Grantee")
    name = str(grantee.get("URI") or grantee.get("ID") or "").strip()
    name = _GROUPS.get(name, name)
    if not name:
        raise CallFailed(action, "Malformed", 200, "a grantee without ID or URI")
    permission = str(required(action, grant, "Permission")).strip()
    if permission not in PERMISSIONS:
        # No rule would match it, so the object would look safe.
        raise CallFailed(action, "Malformed", 200, f"{permission[:40]!r} is not a permission")
    return Grant(name, permission)


def page(query: ListQuery, reply: Reply) -> Page:
    """Parse a page of ListObjectsV2 or ListObjectVersions into a Page. Raises CallFailed (Malformed)."""
    action, versions = query.action, query.versions
    decode = _decoder(action, reply)
    following = None
    if required(action, reply, "IsTruncated") and versions:
        marker = decode(str(required(action, reply, "NextKeyMarker")))
        following = Position(key_marker=marker, version_id_marker=reply.get("NextVersionIdMarker") or None)
    elif reply["IsTruncated"]:
        following = Position(token=str(required(action, reply, "NextContinuationToken")))
    refs = tuple(_ref(action, entry, decode) for entry in reply.get("Versions" if versions else "Contents", ()))
    markers = reply.get("DeleteMarkers", ()) if versions else ()
    return Page(refs, following, tuple(decode(str(required(action, entry, "Key"))) for entry in markers))


def _decoder(action: str, reply: Reply) -> Callable[[str], str]:
    """Return the function that decodes the keys of this listing, as its EncodingType requires.

    With EncodingType=url, "+" stands for a space. A key that is not UTF-8 is refused: with replaced bytes it would name
    a wrong object, or none.
    """

    def decode(text: str) -> str:
        try:
            return unquote_plus(text, errors="strict")
        except UnicodeDecodeError as error:
            raise CallFailed(action, "Malformed", 200, f"the key {text[:100]!r} is not UTF-8") from error

    return decode if reply.get("EncodingType") == "url" else str


def _ref(action: str, entry: Reply, decode: Callable[[str], str]) -> ObjectRef:
    key = decode(str(required(action, entry, "Key")))
    if not key:
        raise CallFailed(action, "Malformed", 200, "a key is empty")
    owner = entry.get("Owner") or {}
    restore = entry.get("RestoreStatus") or {}
    return ObjectRef(
        key=key,
        etag=unquoted(str(required(action, entry, "ETag"))),
        size=int(required(action, entry, "Size")),
        last_modified=iso(required(action, entry, "LastModified")),
        version_id=str(required(action, entry, "VersionId")) if action == "ListObjectVersions" else None,
        storage_class=str(entry.get("StorageClass") or "STANDARD"),
        owner=owner.get("ID") or None,
        is_latest=bool(entry.get("IsLatest", True)),
        checksum_algorithms=tuple(entry.get("ChecksumAlgorithm", ())),
        checksum_type=entry.get("ChecksumType"),
        restored=bool(restore.get("RestoreExpiryDate")) and not restore.get("IsRestoreInProgress", False),
    )
