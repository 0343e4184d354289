"""A request as the stub parses it, its answer, and the errors that become answers."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, unquote

from tests.support.servers import stub_xml
from tests.support.servers.http_server import Asked
from tests.support.servers.world import StubObject

SUB_RESOURCES: Final = {
    "inventory": "ListBucketInventoryConfigurations",
    "ownershipControls": "GetBucketOwnershipControls",
    "publicAccessBlock": "GetPublicAccessBlock",
    "abac": "GetBucketAbac",
    "acl": "GetBucketAcl",
    "tagging": "GetBucketTagging",
    "policyStatus": "GetBucketPolicyStatus",
    "policy": "GetBucketPolicy",
    "versioning": "GetBucketVersioning",
    "encryption": "GetBucketEncryption",
    "requestPayment": "GetBucketRequestPayment",
    "versions": "ListObjectVersions",
}
LISTINGS: Final = frozenset({"ListObjectsV2", "ListObjectVersions"})
OBJECT_READS: Final = frozenset({"GetObject", "HeadObject", "GetObjectAcl"})
CONTROL: Final = {
    "/v20180820/configuration/publicAccessBlock": "GetAccountPublicAccessBlock",
    "/v20180820/accessgrantsinstances": "ListAccessGrantsInstances",
    "/v20180820/accessgrantsinstance/grants": "ListAccessGrants",
    "/v20180820/accessgrantsinstance/resourcepolicy": "GetAccessGrantsInstanceResourcePolicy",
}
"""By path: the operation of S3 Control."""
_REGION: Final = re.compile(r"Credential=[^/]+/\d{8}/([^/]+)/")
_ids = itertools.count(1)


class Logged(NamedTuple):
    """One request, as tests count them. bucket, key: "" where there is none."""

    operation: str
    bucket: str
    key: str
    version_id: str | None


@dataclass(frozen=True, slots=True)
class Call:
    """One request. operation: its name in the API reference. key: percent-decoded once, and not touched otherwise.

    headers: lower-case names. request_id: of the answer. form: the fields of a POST.
    """

    method: str
    operation: str
    bucket: str
    key: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    request_id: str
    form: Mapping[str, str] = field(default_factory=dict)

    @property
    def version_id(self) -> str | None:
        return self.query.get("versionId")

    @property
    def signed_region(self) -> str | None:
        """The region that the signature names; None for an unsigned request."""
        found = _REGION.search(self.headers.get("authorization", ""))
        return found[1] if found else None

    @property
    def logged(self) -> Logged:
        return Logged(self.operation, self.bucket, self.key, self.version_id)


@dataclass(slots=True)
class Reply:
    """One answer. body: its bytes; item: instead, `length` bytes of this object from `start`."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    item: StubObject | None = None
    start: int = 0
    length: int = 0


class Refused(Exception):  # noqa: N818 - an answer on its way, not the stub's error
    """The request is answered with an error."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str = "",
        headers: dict[str, str] | None = None,
        details: tuple[tuple[str, str], ...] = (),
    ) -> None:
        super().__init__(code)
        self.status = status
        self.code = code
        self.message = message or code
        self.headers = headers or {}
        self.details = details

    def reply(self, call: Call) -> Reply:
        """The error document; nothing at all for HEAD."""
        headers = {"Content-Type": "application/xml", **self.headers}
        if call.method == "HEAD":
            return Reply(self.status, headers)
        if call.operation in {"AssumeRole", "GetCallerIdentity"}:
            body = stub_xml.wrapped_error(self.code, self.message, call.request_id, stub_xml.STS)
        elif call.operation in CONTROL.values():
            body = stub_xml.wrapped_error(self.code, self.message, call.request_id)
        else:
            body = stub_xml.error(self.code, self.message, call.request_id, self.details)
        return Reply(self.status, headers, body)


def call_of(asked: Asked) -> Call:
    """Read a request as it came over the wire."""
    headers = {name.decode(): value.decode(errors="surrogateescape") for name, value in asked.headers.items()}
    form = dict(parse_qsl(asked.body.decode())) if asked.method == "POST" else None
    return understand(asked.method, asked.target, headers, form)


def understand(method: str, target: str, headers: Mapping[str, str], form: Mapping[str, str] | None = None) -> Call:
    """Read a request. target: the request target as it came over the wire; form: a POST's fields."""
    path, _, raw_query = target.partition("?")
    query = dict(parse_qsl(raw_query, keep_blank_values=True))
    raw_bucket, _, raw_key = path[1:].partition("/")
    try:
        bucket, key = unquote(raw_bucket, errors="strict"), unquote(raw_key, errors="strict")
        operation = _operation(method, path, query, bucket, key, form or {})
    except UnicodeDecodeError:
        bucket, key, operation = "", "", "InvalidURI"
    if operation in {"ListBuckets", "GetCallerIdentity", *CONTROL.values()}:
        bucket = key = ""
    return Call(method, operation, bucket, key, query, headers, f"STUB{next(_ids):012X}", form or {})


def _operation(method: str, path: str, query: Mapping[str, str], bucket: str, key: str, form: Mapping[str, str]) -> str:
    if method == "POST":
        return form.get("Action", "Unknown") if path == "/" else "Unknown"
    if method not in {"GET", "HEAD"}:
        return "Unknown"
    if path in CONTROL:
        return CONTROL[path]
    if not bucket:
        return "ListBuckets"
    if method == "HEAD":
        return "HeadObject" if key else "HeadBucket"
    if key:
        return "GetObjectAcl" if "acl" in query else "GetObject"
    if query.get("list-type") == "2":
        return "ListObjectsV2"
    return next((name for part, name in SUB_RESOURCES.items() if part in query), "Unknown")
