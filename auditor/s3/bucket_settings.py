"""The settings of a bucket: for each its API call, the parser of the reply, and the value if it is not configured.

The replies also show whose rules of access a server follows: those of AWS, those of the Ceph object gateway (RGW), or
its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from msgspec import Struct, field

from auditor.errors import CallFailed
from auditor.model.bucket import Encryption, PublicAccessBlock, Semantics
from auditor.model.object import Acl, Skipped
from auditor.model.policy import parse as parse_policy
from auditor.s3.engines import answers as replies
from auditor.s3.engines.answers import Reply

DNS_SUFFIXES: Final = (
    "amazonaws.com",
    "api.aws",
    "amazonaws.com.cn",
    "api.amazonwebservices.com.cn",
    "amazonaws.eu",
    "api.amazonwebservices.eu",
    "c2s.ic.gov",
    "api.aws.ic.gov",
    "sc2s.sgov.gov",
    "api.aws.scloud",
    "cloud.adc-e.uk",
    "api.cloud-aws.adc-e.uk",
    "csp.hci.ic.gov",
    "api.aws.hci.ic.gov",
)
"""The ends of the host names of AWS's partitions (partitions.json of botocore)."""

_RGW_REQUEST: Final = re.compile(r"tx[0-9a-f]+-[0-9a-f]{10}-[0-9a-f]+-\S+")
"""The form of RGW's request IDs, such as tx00000e0f3d410cc037725-006b03debd-1017-default. OpenStack Swift's IDs have a
similar form; Swift also sends its ID as x-trans-id."""


def _ownership(reply: Reply) -> str:
    action = "GetBucketOwnershipControls"
    rules = replies.required(action, reply, "OwnershipControls", "Rules")
    if not rules:
        raise CallFailed(action, "Malformed", 200, "no rule")
    return str(replies.required(action, rules[0], "ObjectOwnership"))


def access_block_of(reply: Reply, action: str = "GetPublicAccessBlock") -> PublicAccessBlock:
    """Parse a reply of GetPublicAccessBlock or GetAccessPoint. Raises CallFailed (Malformed) if its configuration is
    missing or empty.
    """
    switches = replies.required(action, reply, "PublicAccessBlockConfiguration")
    if not switches:
        raise CallFailed(action, "Malformed", 200, "no switch")
    return PublicAccessBlock(
        bool(switches.get("BlockPublicAcls")),
        bool(switches.get("IgnorePublicAcls")),
        bool(switches.get("BlockPublicPolicy")),
        bool(switches.get("RestrictPublicBuckets")),
    )


def is_public(reply: Reply, action: str = "GetBucketPolicyStatus") -> bool:
    """Parse a reply of GetBucketPolicyStatus or GetAccessPointPolicyStatus. Raises CallFailed (Malformed)."""
    return bool(replies.required(action, reply, "PolicyStatus", "IsPublic"))


def policy_of(reply: Reply, action: str) -> str:
    """Return the policy in a reply, a document that can be parsed. Raises CallFailed (Malformed)."""
    text = str(replies.required(action, reply, "Policy"))
    try:
        parse_policy(text)
    except ValueError as error:
        raise CallFailed(action, "Malformed", 200, str(error)) from error
    return text


def _policy(reply: Reply) -> str:
    action = "GetBucketPolicy"
    if not str(replies.required(action, reply, "Policy")).strip():
        # A bucket without a policy answers NoSuchBucketPolicy, never an empty text.
        raise CallFailed(action, "Malformed", 200, "no document")
    return policy_of(reply, action)


def _encryption(reply: Reply) -> Encryption:
    action = "GetBucketEncryption"
    rules = replies.required(action, reply, "ServerSideEncryptionConfiguration", "Rules")
    blocked = [kind for rule in rules for kind in (rule.get("BlockedEncryptionTypes") or {}).get("EncryptionType", ())]
    if "" in blocked:
        raise CallFailed(action, "Malformed", 200, "a blocked encryption type has no name")
    for rule in rules:
        default = rule.get("ApplyServerSideEncryptionByDefault")
        if default:
            return Encryption(
                str(replies.required(action, default, "SSEAlgorithm")),
                default.get("KMSMasterKeyID"),
                bool(rule.get("BucketKeyEnabled")),
                tuple(map(str, blocked)) or None,
            )
    raise CallFailed(action, "Malformed", 200, "no rule")


def _versioning(reply: Reply) -> str:
    """Return Enabled, Suspended or Never. An empty document means Never; a reply without a document is malformed."""
    headers = reply.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    if headers.get("content-length") == "0":
        raise CallFailed("GetBucketVersioning", "Malformed", 200, "no document")
    return str(reply.get("Status") or "Never")


def _payer(reply: Reply) -> str:
    return str(replies.required("GetBucketRequestPayment", reply, "Payer"))


def _abac(reply: Reply) -> bool:
    action = "GetBucketAbac"
    status = replies.required(action, reply, "AbacStatus", "Status")
    if status not in ("Enabled", "Disabled"):
        raise CallFailed(action, "Malformed", 200, "the status is neither Enabled nor Disabled")
    return bool(status == "Enabled")


def _tags(reply: Reply) -> dict[str, str]:
    action = "GetBucketTagging"
    tags = replies.required(action, reply, "TagSet")
    return {str(replies.required(action, tag, "Key")): str(tag.get("Value") or "") for tag in tags}


def _bucket_acl(reply: Reply) -> Acl:
    return replies.acl("GetBucketAcl", reply)


LACKS: Final = frozenset({"NotImplemented", "MethodNotAllowed", "501", "405"})
"""Error codes by which a server says that it does not have a call."""


def says_nothing(reply: Reply) -> bool:
    """True if the reply has no element of the requested document. RGW answers a call that it does not have with a
    listing of the bucket.
    """
    return not any(value for name, value in reply.items() if name != "ResponseMetadata")


class BucketSetting(Struct, frozen=True):
    """One setting of a bucket, with the API call that reads it.

    fact: the field of BucketFacts that gets the value. action: the API call. parse: makes the value from the reply.
    absent: by error code that means "not configured", the value that the setting then has. lacked: the value at a
    server that does not have the call; None if the setting is unread there.
    """

    fact: str
    action: str
    parse: Callable[[Reply], Any]
    absent: Mapping[str, Any] = field(default_factory=dict)
    lacked: Any = None


SETTINGS: Final = (
    BucketSetting("acl", "GetBucketAcl", _bucket_acl, lacked=Skipped("the server has no ACLs")),
    BucketSetting(
        "ownership",
        "GetBucketOwnershipControls",
        _ownership,
        {"OwnershipControlsNotFoundError": "ObjectWriter"},
        "ObjectWriter",
    ),
    BucketSetting(
        "public_access_block",
        "GetPublicAccessBlock",
        access_block_of,
        {"NoSuchPublicAccessBlockConfiguration": PublicAccessBlock()},
        PublicAccessBlock(),
    ),
    BucketSetting("policy_is_public", "GetBucketPolicyStatus", is_public, {"NoSuchBucketPolicy": False}, False),
    BucketSetting("policy", "GetBucketPolicy", _policy, {"NoSuchBucketPolicy": ""}, ""),
    BucketSetting("versioning", "GetBucketVersioning", _versioning, lacked="Never"),
    BucketSetting(
        "encryption",
        "GetBucketEncryption",
        _encryption,
        {"ServerSideEncryptionConfigurationNotFoundError": Encryption()},
        Encryption(),
    ),
    BucketSetting("request_payer", "GetBucketRequestPayment", _payer, lacked="BucketOwner"),
)

ABAC: Final = BucketSetting("abac", "GetBucketAbac", _abac, lacked=False)
TAGS: Final = BucketSetting("tags", "GetBucketTagging", _tags, {"NoSuchTagSet": {}}, {})
"""The settings that are read only where the bucket policy asks for a tag of the bucket."""
NOT_TESTED: Final = Skipped("no statement of the bucket policy asks for a tag of the bucket")
MAY_BE_TESTED: Final = Skipped("the bucket policy, which may ask for a tag of the bucket, was not read")
ABAC_IS_OFF: Final = Skipped("ABAC is off, so that conditions do not see the bucket's tags")


def semantics_of(endpoint: str | None, headers: Mapping[str, str]) -> Semantics:
    """Return the kind of server: AWS, Ceph or another.

    endpoint: the URL that the user set; None for AWS's own. headers: those of the answer to HeadBucket, even of a
    refusal, by lower-case name. A server behind a custom endpoint that says `Server: AmazonS3` is taken for a way to
    AWS, or for a copy of it.
    """
    if endpoint is None or _is_at_aws(urlsplit(endpoint).hostname or ""):
        return Semantics.AWS
    server = headers.get("server", "")
    if server == "AmazonS3":
        return Semantics.AWS
    by_rgw = "x-trans-id" not in headers and _RGW_REQUEST.fullmatch(headers.get("x-amz-request-id", ""))
    if by_rgw or server.startswith("Ceph Object Gateway") or any(name.startswith("x-rgw-") for name in headers):
        return Semantics.CEPH
    return Semantics.OTHER


def _is_at_aws(host: str) -> bool:
    return f".{host.rstrip('.').lower()}".endswith(tuple(f".{suffix}" for suffix in DNS_SUFFIXES))
