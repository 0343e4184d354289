"""Answers of S3, S3 Control and STS in the shapes of their API references."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final
from urllib.parse import quote_plus

from auditor.model.bucket import Encryption, PublicAccessBlock
from auditor.model.object import Acl, Grant
from tests.support.servers.world import StubBucket, World

S3: Final = "http://s3.amazonaws.com/doc/2006-03-01/"
STS: Final = "https://sts.amazonaws.com/doc/2011-06-15/"
XSI: Final = "http://www.w3.org/2001/XMLSchema-instance"
PROLOGUE: Final = '<?xml version="1.0" encoding="UTF-8"?>\n'
_SPECIAL: Final = re.compile('[&<>"\x00-\x1f\x7f]')
_PLAIN: Final = re.compile(r"[A-Za-z0-9/*_.-]*")
_NAMED: Final = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"}


def text(value: str) -> str:
    """Escaped as S3 does it: control characters become references, even those that no XML parser takes."""
    return _SPECIAL.sub(lambda found: _NAMED.get(found[0], f"&#x{ord(found[0]):x};"), value)


def url_encoded(value: str) -> str:
    """The listing's encoding-type=url: "+" is a space and %2B a plus; slashes stay."""
    return value if _PLAIN.fullmatch(value) else quote_plus(value, safe="/*").replace("~", "%7E")


def tag(name: str, value: str | int | bool | None) -> str:
    """One element; "" when there is no value."""
    if value is None:
        return ""
    if isinstance(value, bool):
        value = "true" if value else "false"
    return f"<{name}>{text(str(value))}</{name}>"


def document(root: str, inner: str = "", namespace: str = S3) -> bytes:
    return f'{PROLOGUE}<{root} xmlns="{namespace}">{inner}</{root}>'.encode()


@functools.lru_cache
def timestamp(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def error(code: str, message: str, request_id: str, details: Iterable[tuple[str, str]] = ()) -> bytes:
    """S3's error document, which has no namespace."""
    more = "".join(tag(name, value) for name, value in details)
    inner = f"{tag('Code', code)}{tag('Message', message)}{more}{tag('RequestId', request_id)}<HostId>stub</HostId>"
    return f"{PROLOGUE}<Error>{inner}</Error>".encode()


def wrapped_error(code: str, message: str, request_id: str, namespace: str | None = None) -> bytes:
    """The error document of S3 Control (no namespace) and STS."""
    space = f' xmlns="{namespace}"' if namespace else ""
    inner = f"<Error><Type>Sender</Type>{tag('Code', code)}{tag('Message', message)}</Error>"
    return f"{PROLOGUE}<ErrorResponse{space}>{inner}{tag('RequestId', request_id)}</ErrorResponse>".encode()


def access_control_policy(acl: Acl) -> bytes:
    grants = "".join(map(_grant, acl.grants))
    return document(
        "AccessControlPolicy",
        f"<Owner>{tag('ID', acl.owner)}</Owner><AccessControlList>{grants}</AccessControlList>",
    )


def _grant(grant: Grant) -> str:
    group = "://" in grant.grantee
    kind, field = ("Group", "URI") if group else ("CanonicalUser", "ID")
    grantee = f'<Grantee xmlns:xsi="{XSI}" xsi:type="{kind}">{tag(field, grant.grantee)}</Grantee>'
    return f"<Grant>{grantee}{tag('Permission', grant.permission)}</Grant>"


def public_access_block(block: PublicAccessBlock) -> bytes:
    return document(
        "PublicAccessBlockConfiguration",
        tag("BlockPublicAcls", block.block_public_acls)
        + tag("IgnorePublicAcls", block.ignore_public_acls)
        + tag("BlockPublicPolicy", block.block_public_policy)
        + tag("RestrictPublicBuckets", block.restrict_public_buckets),
    )


def encryption(default: Encryption, blocked: Iterable[str] | None) -> bytes:
    key = tag("SSEAlgorithm", default.algorithm) + tag("KMSMasterKeyID", default.kms_key_id)
    rule = (
        f"<ApplyServerSideEncryptionByDefault>{key}</ApplyServerSideEncryptionByDefault>"
        f"{tag('BucketKeyEnabled', default.bucket_key_enabled)}"
    )
    if blocked is not None:
        kinds = "".join(tag("EncryptionType", kind) for kind in blocked)
        rule += f"<BlockedEncryptionTypes>{kinds}</BlockedEncryptionTypes>"
    return document("ServerSideEncryptionConfiguration", f"<Rule>{rule}</Rule>")


def buckets(world: World, shown: Iterable[StubBucket], prefix: str | None) -> bytes:
    rows = "".join(
        f"<Bucket>{tag('Name', bucket.name)}<CreationDate>2026-01-01T00:00:00.000Z</CreationDate>"
        f"{tag('BucketRegion', bucket.region)}</Bucket>"
        for bucket in shown
    )
    inner = f"<Owner>{tag('ID', world.owner)}</Owner><Buckets>{rows}</Buckets>{tag('Prefix', prefix)}"
    return document("ListAllMyBucketsResult", inner)


def caller_identity(world: World, request_id: str) -> bytes:
    result = tag("Arn", world.arn) + tag("UserId", "AIDASTUBSTUBSTUBSTUB") + tag("Account", world.account)
    return document(
        "GetCallerIdentityResponse",
        f"<GetCallerIdentityResult>{result}</GetCallerIdentityResult>"
        f"<ResponseMetadata>{tag('RequestId', request_id)}</ResponseMetadata>",
        STS,
    )
