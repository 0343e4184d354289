"""Parse the answers to calls on a bucket's settings, into replies in botocore's form. The functions are pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from xml.etree.ElementTree import Element

from auditor.s3.engines.parse_headers import malformed
from auditor.s3.engines.parse_reply import Reply
from auditor.s3.engines.parse_xml import acl_reply, check_once, name_of, root_of

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
