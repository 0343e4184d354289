"""We parse any XML and headers of S3 as the SDK does, fact by fact and fault by fault."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any
from urllib.parse import quote_plus
from xml.sax.saxutils import escape

import botocore.session
from botocore.awsrequest import HeadersDict
from botocore.parsers import ResponseParserError, create_parser
from hypothesis import given, settings
from hypothesis import strategies as st

from auditor.aws.sdk_errors import sdk_errors
from auditor.errors import CallFailed
from auditor.s3.engines import answers as headers
from auditor.s3.engines import answers as replies
from auditor.s3.engines import xml_answers as documents
from auditor.s3.engines.base import ListQuery
from auditor.s3.engines.sdk import headers_of

NAMESPACE = "http://s3.amazonaws.com/doc/2006-03-01/"
TEXT = st.text(st.characters(blacklist_categories=["Cs", "Cc"], blacklist_characters="\ufffe\uffff"), max_size=12)
KEYS = st.text(st.characters(blacklist_categories=["Cs"]), min_size=1, max_size=12).map(
    lambda key: quote_plus(key, safe="/")
)
DATES = st.datetimes().map(lambda moment: f"{moment.isoformat()[:19]}.000Z") | st.just("soon")
IDS = st.text("0123456789abcdef", min_size=0, max_size=8)


def element(name: str, text: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return text.map(lambda value: f"<{name}>{escape(value)}</{name}>")


def some(*parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """The parts in any order, now and then without one, now and then in lines."""
    present = st.tuples(*(st.just("") | part | part | part | part for part in parts))
    return st.builds(
        lambda chosen, order, gap: gap.join(sorted(chosen, key=lambda part: hash((part, order)))),
        present,
        st.integers(0, 5),
        st.sampled_from(["", "\n  "]),
    )


def wrapped(name: str, inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return inner.map(lambda text: f"<{name}>{text}</{name}>")


OWNER = wrapped("Owner", some(element("ID", IDS), element("DisplayName", TEXT)))
RESTORE = wrapped(
    "RestoreStatus",
    some(
        element("IsRestoreInProgress", st.sampled_from(["true", "false"])),
        element("RestoreExpiryDate", st.just("2026-01-02T03:04:05.000Z")),
    ),
)
FIELDS = (
    element("Key", KEYS),
    element("LastModified", DATES),
    element("ETag", st.sampled_from(['"e"', "e", '"f-2"', ""])),
    element("Size", st.integers(0, 2**42).map(str)),
    element("StorageClass", st.sampled_from(["STANDARD", "GLACIER", ""])),
    element("ChecksumAlgorithm", st.sampled_from(["SHA256", "CRC32"])),
    element("ChecksumType", st.sampled_from(["FULL_OBJECT", "COMPOSITE"])),
    OWNER,
    RESTORE,
)
OF_A_VERSION = (
    element("VersionId", st.sampled_from(["null", "v1", ""])),
    element("IsLatest", st.sampled_from(["true", "false"])),
)
ENTRIES = {
    "Contents": wrapped("Contents", some(*FIELDS)),
    "Version": wrapped("Version", some(*FIELDS, *OF_A_VERSION)),
    "DeleteMarker": wrapped("DeleteMarker", some(*FIELDS[:2], *OF_A_VERSION, OWNER)),
}


def page_of(root: str, *entries: str) -> st.SearchStrategy[bytes]:
    ends = some(
        element("IsTruncated", st.sampled_from(["true", "false", "false"])),
        element("NextContinuationToken", TEXT),
        element("NextKeyMarker", KEYS),
        element("NextVersionIdMarker", TEXT),
        element("EncodingType", st.just("url")),
        element("Prefix", TEXT),
        element("KeyCount", st.just("3")),
        wrapped("CommonPrefixes", element("Prefix", TEXT)),
    )
    parts = st.lists(st.one_of(*(ENTRIES[name] for name in entries)), max_size=4).map("".join)
    return st.builds(
        lambda head, tail: (
            f'<?xml version="1.0" encoding="UTF-8"?><{root} xmlns="{NAMESPACE}">{head}{tail}</{root}>'.encode()
        ),
        ends,
        parts,
    )


GRANTEE = wrapped(
    "Grantee",
    some(
        element("ID", IDS),
        element("URI", st.just("http://acs.amazonaws.com/groups/global/AllUsers")),
        element("DisplayName", TEXT),
    ),
).map(
    lambda text: text.replace(
        "<Grantee>", '<Grantee xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:type="Group">'
    )
)
GRANT = wrapped("Grant", some(GRANTEE, element("Permission", st.sampled_from(["READ", " READ\n", "FULL_CONTROL", ""]))))
ACL = some(OWNER, wrapped("AccessControlList", st.lists(GRANT, max_size=3).map("".join))).map(
    lambda text: f'<AccessControlPolicy xmlns="{NAMESPACE}">{text}</AccessControlPolicy>'.encode()
)


@cache
def shape(operation: str) -> Any:
    return botocore.session.Session().get_service_model("s3").operation_model(operation).output_shape


def sdk_reply(operation: str, body: bytes, sent: Mapping[str, str]) -> Any:
    answer = {"status_code": 200, "headers": HeadersDict(sent), "body": body}
    with sdk_errors(operation):
        try:
            return create_parser("rest-xml").parse(answer, shape(operation))
        except ResponseParserError as error:
            raise CallFailed(operation, documents.UNREADABLE, 500) from error


def outcome(read: Callable[[], Any]) -> Any:
    """The fact, or the code of the fault."""
    try:
        return read()
    except CallFailed as failure:
        return failure.code


@settings(max_examples=50)
@given(page_of("ListBucketResult", "Contents"))
def test_listing(body: bytes) -> None:
    query = ListQuery()
    ours = outcome(lambda: documents.page(query, body))
    assert ours == outcome(lambda: replies.page(query, sdk_reply("ListObjectsV2", body, {})))


@settings(max_examples=50)
@given(page_of("ListVersionsResult", "Version", "DeleteMarker"))
def test_listing_of_versions(body: bytes) -> None:
    query = ListQuery(versions=True)
    ours = outcome(lambda: documents.page(query, body))
    assert ours == outcome(lambda: replies.page(query, sdk_reply("ListObjectVersions", body, {})))


@settings(max_examples=50)
@given(ACL)
def test_acl(body: bytes) -> None:
    action = "GetObjectAcl"
    assert outcome(lambda: documents.acl(action, body)) == outcome(
        lambda: replies.acl(action, sdk_reply(action, body, {}))
    )


HEADER_TEXT = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), max_size=10)
TEXTS = """
Content-Type Content-Encoding Content-Disposition Content-Language Cache-Control x-amz-version-id
x-amz-storage-class x-amz-server-side-encryption x-amz-server-side-encryption-aws-kms-key-id
x-amz-server-side-encryption-customer-algorithm x-amz-checksum-type x-amz-checksum-sha256 x-amz-checksum-md5
x-amz-checksum-xxhash128 x-amz-restore x-amz-expiration x-amz-object-lock-legal-hold
x-amz-object-lock-event-hold x-amz-request-id
"""
HEADERS = st.fixed_dictionaries(
    {},
    optional={
        "ETag": st.sampled_from(['"e"', "e", ""]),
        "Content-Length": st.integers(0, 2**42).map(str) | st.just("many"),
        "Last-Modified": st.sampled_from(["Fri, 02 Jan 2026 03:04:05 GMT", "Fri, 30 Feb 2026 03:04:05 GMT", "soon"]),
        "x-amz-missing-meta": st.sampled_from(["0", "2", "some"]),
        "x-amz-mp-parts-count": st.sampled_from(["1", "10000"]),
        "x-amz-object-lock-event-hold-duration-days": st.sampled_from(["30", "0", "some", ""]),
        "x-amz-object-lock-retain-until-date": st.sampled_from(["2030-01-02T03:04:05.678Z", "never"]),
        "x-amz-server-side-encryption-bucket-key-enabled": st.sampled_from(["true", "false", "TRUE"]),
        "x-amz-meta-Some": HEADER_TEXT,
        "x-amz-meta-": HEADER_TEXT,
        **dict.fromkeys(TEXTS.split(), HEADER_TEXT),
    },
)


@settings(max_examples=100)
@given(HEADERS)
def test_head(sent: dict[str, str]) -> None:
    ours = outcome(lambda: headers.head({name.lower().encode(): value.encode() for name, value in sent.items()}))
    theirs = outcome(lambda: headers.head(headers_of(sdk_reply("HeadObject", b"", {**sent}), "utf-8")))
    assert ours == theirs
