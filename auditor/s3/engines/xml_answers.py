"""Parse the XML of S3's answers into facts, errors, and replies in botocore's form on a bucket's settings.

The functions are pure. answers.py checks the elements.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Any, Final
from xml.etree.ElementTree import XML, Element, ParseError, XMLParser

from auditor.errors import CallFailed
from auditor.model.dates import iso_date, seconds_in_utc
from auditor.model.object import Acl
from auditor.s3.engines import answers as replies
from auditor.s3.engines.answers import Reply, malformed
from auditor.s3.engines.base import ListQuery, Page

UNREADABLE: Final = "500"
"""The error code for an answer with status 200 whose body is not XML. As in the SDKs, the call is then retried."""
LARGEST_ACL: Final = 256 * 1024
"""Limit in bytes of an ACL or an error document: parsing takes 50 times the memory. S3's hundred grants take 30 KiB."""
MOST_TAGS: Final = 100_000
"""Limit of tags and attributes together. A page of 1,000 versions has 32,000 tags."""
_LARGEST_CACHED: Final = 8 * 1024
_ENTRIES: Final = {"Contents": "Contents", "Version": "Versions", "DeleteMarker": "DeleteMarkers"}
"""By element of a listing: the name of its list in botocore's reply."""

QUERIES: Final[Mapping[str, str]] = {
    "GetBucketAbac": "abac=",
    "GetBucketAcl": "acl=",
    "GetBucketEncryption": "encryption=",
    "GetBucketOwnershipControls": "ownershipControls=",
    "GetBucketPolicy": "policy=",
    "GetBucketPolicyStatus": "policyStatus=",
    "GetBucketRequestPayment": "requestPayment=",
    "GetBucketTagging": "tagging=",
    "GetBucketVersioning": "versioning=",
    "GetPublicAccessBlock": "publicAccessBlock=",
    "ListBucketInventoryConfigurations": "inventory=",
}
"""By action: the URL query of the request (S3 API reference)."""

_MEMBERS: Final[Mapping[str, str]] = {
    "GetBucketAbac": "AbacStatus",
    "GetBucketEncryption": "ServerSideEncryptionConfiguration",
    "GetBucketOwnershipControls": "OwnershipControls",
    "GetBucketPolicyStatus": "PolicyStatus",
    "GetPublicAccessBlock": "PublicAccessBlockConfiguration",
}
"""By action: the member of botocore's reply that has the whole document. Other replies have the document's elements."""

_STRUCTURES: Final = frozenset(
    {
        "ApplyServerSideEncryptionByDefault",
        "Destination",
        "Filter",
        "GetCallerIdentityResult",
        "Grantee",
        "Owner",
        "PolicyStatus",
        "PublicAccessBlockConfiguration",
        "S3BucketDestination",
        "Schedule",
        "VpcConfiguration",
    }
)
_REPEATED: Final = {"InventoryConfiguration": "InventoryConfigurationList", "Rule": "Rules"}
"""Children that may be there several times, each with the name of their list in botocore's reply."""
_TEXTS: Final = frozenset({"OptionalFields"})
"""Elements whose children are texts."""
_FLAT_TEXTS: Final = {"BlockedEncryptionTypes": "EncryptionType"}
"""Elements whose children are texts of one name, which is the name of their list in botocore's reply."""
_LISTS: Final = frozenset({"AccessGrantsInstancesList", "AccessGrantsList", "AccessPointList", "Buckets", "TagSet"})
_BOOLEANS: Final = frozenset(
    {
        "BlockPublicAcls",
        "BlockPublicPolicy",
        "BucketKeyEnabled",
        "IgnorePublicAcls",
        "IsEnabled",
        "IsPublic",
        "IsTruncated",
        "RestrictPublicBuckets",
    }
)


def page(query: ListQuery, body: bytes) -> Page:
    """Parse the XML of a page of ListObjectsV2 or ListObjectVersions into a Page. Raises CallFailed."""
    action, root = query.action, root_of(query.action, body)
    reply: dict[str, Any] = {name: [] for name in _ENTRIES.values()}
    try:
        for child in root:
            name = name_of(child)
            if name in _ENTRIES:
                reply[_ENTRIES[name]].append(_entry(child))
            elif name in reply and name != "CommonPrefixes":
                raise _repeated(name)
            elif name == "IsTruncated":
                reply[name] = _boolean(name, child)
            else:
                reply[name] = child.text or ""
        return replies.page(query, reply)
    except (ValueError, OverflowError) as error:
        raise malformed(action, str(error)) from error


def _entry(element: Element) -> dict[str, Any]:
    entry: dict[str, Any] = {}
    for child in element:
        name = name_of(child)
        text = child.text or ""
        if name == "LastModified":
            entry[name] = seconds_in_utc(iso_date(text))
        elif name == "IsLatest":
            entry[name] = text == "true"
        elif name == "ChecksumAlgorithm":
            entry.setdefault(name, []).append(text)
        elif name in ("Owner", "RestoreStatus"):
            entry[name] = _texts(child)
        else:
            entry[name] = text
    if len(entry) < len(element):
        check_once(element)
    if restore := entry.get("RestoreStatus"):
        restore["IsRestoreInProgress"] = restore.get("IsRestoreInProgress") == "true"
    return entry


def acl(action: str, body: bytes) -> Acl:
    """Parse the XML of an ACL into an Acl. Raises CallFailed.

    The results are cached, because most objects of a bucket have equal ACLs.
    """
    return _cached_acl(action, body) if len(body) <= _LARGEST_CACHED else _acl(action, body)


def _acl(action: str, body: bytes) -> Acl:
    return replies.acl(action, acl_reply(action, body))


def acl_reply(action: str, body: bytes) -> dict[str, Any]:
    """Parse the XML of an ACL into a reply in botocore's form. Raises CallFailed."""
    if len(body) > LARGEST_ACL:
        raise malformed(action, "the answer is too large for an ACL")
    root = root_of(action, body)
    reply: dict[str, Any] = {}
    try:
        check_once(root)
        for child in root:
            name = name_of(child)
            if name == "Owner":
                reply["Owner"] = _texts(child)
            elif name == "AccessControlList":
                reply["Grants"] = [_grant(grant) for grant in child]
    except ValueError as error:
        raise malformed(action, str(error)) from error
    return reply


_cached_acl = lru_cache(maxsize=512)(_acl)


def _grant(element: Element) -> dict[str, Any]:
    """Parse one grant of an ACL.

    Raises ValueError if the element is not a Grant: the result would look like a grant without a grantee.
    """
    if name_of(element) != "Grant":
        raise ValueError(f"{name_of(element)[:20]} stands where a Grant should")
    check_once(element)
    return {name_of(child): _texts(child) if name_of(child) == "Grantee" else child.text for child in element}


def _texts(element: Element) -> dict[str, str]:
    found = {name_of(child): child.text or "" for child in element}
    if len(found) < len(element):
        check_once(element)
    return found


def check_once(element: Element, several: Collection[str] = ("ChecksumAlgorithm",)) -> None:
    """Raise ValueError if two children of the element have the same name, because one value would be lost.

    several: names that may repeat.
    """
    seen: set[str] = set()
    for child in element:
        name = name_of(child)
        if name in seen and name not in several:
            raise _repeated(name)
        seen.add(name)


def _repeated(name: str) -> ValueError:
    return ValueError(f"{name[:40]} is there twice")


def error_of(body: bytes) -> tuple[str, str]:
    """Return the code and the message in an error document; ("", "") for any other body."""
    if len(body) > LARGEST_ACL:
        return "", ""
    try:
        root = _tree(body)
        wrapped = next((child for child in root if name_of(child) == "Error"), root)  # by STS and S3 Control
        found = {name_of(child): child.text or "" for child in wrapped}
    except (ParseError, ValueError, LookupError):
        return "", ""
    return found.get("Code", "").strip(), found.get("Message", "")


def root_of(action: str, body: bytes) -> Element:
    """Return the root of an XML document. Raises CallFailed if the body is not XML, or is an error document."""
    if not body:
        raise malformed(action, "the answer is empty")
    try:
        root = _tree(body)
    except (ParseError, ValueError, LookupError) as error:
        raise CallFailed(action, UNREADABLE, 500, f"the answer is no XML: {error}"[:500]) from error
    if name_of(root) == "Error":
        code, message = error_of(body)
        raise CallFailed(action, (code or UNREADABLE)[:100], 500, message[:500])
    return root


def _tree(body: bytes) -> Element:
    """Parse an XML document in UTF-8. Raises ParseError, or ValueError for one that would take too much memory: it has
    too many tags, or a document type, which can name one text many times.
    """
    if body.count(b"<") + body.count(b"=") > MOST_TAGS or b"<!DOCTYPE" in body:
        raise ValueError("it has too many elements, or a document type")
    parser = XMLParser(encoding="utf-8")  # noqa: S314 - as botocore does: no other encoding can hide a tag
    return XML(body, parser)


def name_of(element: Element) -> str:
    """Return the element's name without its namespace, which some servers leave out."""
    return element.tag.rpartition("}")[2]


def _boolean(name: str, element: Element) -> bool:
    word = (element.text or "").strip().lower()
    if word not in ("true", "false"):
        raise ValueError(f"{name} is {word[:20]!r}, which is neither true nor false")
    return word == "true"


def setting(action: str, body: bytes) -> Reply:
    """Parse the answer to the call `action` into a reply in botocore's form.

    action: a call on a bucket's settings, ListBuckets, GetCallerIdentity, or a call of S3 Control. Raises CallFailed if
    the answer is malformed or an error document.
    """
    if action == "GetBucketAcl":
        return acl_reply(action, body)
    if action == "GetBucketPolicy":
        return {"Policy": _policy(body)}
    try:
        root = root_of(action, body)
        # A server may answer a call that it does not have with a listing. The SDK finds none of the elements there.
        found = {} if name_of(root) == "ListBucketResult" and action != "ListBuckets" else _structure(root)
    except (ValueError, RecursionError) as error:
        raise malformed(action, str(error)) from error
    return {_MEMBERS[action]: found} if action in _MEMBERS else found.get("GetCallerIdentityResult", found)


def _policy(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        raise malformed("GetBucketPolicy", str(error)) from error


def _structure(element: Element) -> dict[str, Any]:
    """Return the values of an element's children, by name: texts, booleans, and dicts for nested elements.

    As in botocore's replies, the children of _REPEATED become a list, and the elements of _LISTS and _TEXTS become
    lists.
    """
    check_once(element, tuple(_REPEATED))
    found: dict[str, Any] = {}
    for child in element:
        name = name_of(child)
        if name in _REPEATED:
            found.setdefault(_REPEATED[name], []).append(_structure(child))
        elif name in _TEXTS:
            found[name] = [item.text or "" for item in child]
        elif name in _FLAT_TEXTS:
            kind = _FLAT_TEXTS[name]
            found[name] = {kind: [(item.text or "").strip() for item in child if name_of(item) == kind]}
        elif name in _LISTS:
            found[name] = [_structure(item) for item in child]
        elif name in _STRUCTURES:
            found[name] = _structure(child)
        else:
            text = child.text or ""
            found[name] = text == "true" if name in _BOOLEANS else text
    return found
