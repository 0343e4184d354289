"""Replies become facts, element by element; a reply without a needed element is malformed, never an empty fact."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from auditor.errors import CallFailed
from auditor.model.object import ALL_USERS, Acl, Grant, ObjectRef
from auditor.s3.engines import answers as headers
from auditor.s3.engines import answers as replies
from auditor.s3.engines.base import ListQuery, Page, Position, Span
from auditor.s3.engines.sdk import headers_of

DATE = datetime(2026, 1, 2, 3, 4, 5, 600, tzinfo=UTC)
LEAST = {"Key": "k", "ETag": '"e"', "Size": "3", "LastModified": "2026-01-02T03:04:05Z"}
MOST = LEAST | {
    "LastModified": DATE,
    "StorageClass": "GLACIER",
    "Owner": {"ID": "o", "DisplayName": "x"},
    "IsLatest": False,
    "VersionId": "v",
    "ChecksumAlgorithm": ["SHA256", "CRC32"],
    "ChecksumType": "FULL_OBJECT",
    "RestoreStatus": {"RestoreExpiryDate": "2027-01-02T03:04:05Z"},
}
VERSIONS = ListQuery(versions=True)


def objects(*entries: dict[str, Any], **reply: Any) -> Page:
    return replies.page(ListQuery(), {"IsTruncated": False, "Contents": entries, **reply})


def refused(call: Any, *arguments: Any, action: str = "ListObjectsV2") -> str:
    """The message of the CallFailed that the call raises, which is malformed in an answer of status 200."""
    with pytest.raises(CallFailed) as caught:
        call(*arguments)
    assert (caught.value.action, caught.value.code, caught.value.status) == (action, "Malformed", 200)
    return caught.value.message


def without(reply: dict[str, Any], name: str) -> dict[str, Any]:
    return {member: value for member, value in reply.items() if member != name}


# ---- the listing


def test_entry_with_everything_and_with_the_least() -> None:
    least = ObjectRef("k", "e", 3, "2026-01-02T03:04:05Z")
    assert objects(LEAST) == Page((least,), None)
    assert (least.storage_class, least.owner, least.is_latest, least.restored) == ("STANDARD", None, True, False)
    said = {"storage_class": "GLACIER", "owner": "o", "checksum_type": "FULL_OBJECT"}
    algorithms = ("SHA256", "CRC32")
    most = replace(least, is_latest=False, checksum_algorithms=algorithms, restored=True, **said)
    assert objects(MOST).refs == (most,)
    assert objects(LEAST | {"Owner": {"ID": ""}, "StorageClass": ""}) == Page((least,), None)


@pytest.mark.parametrize(
    ("status", "restored"),
    [
        ({"RestoreExpiryDate": DATE}, True),
        ({"RestoreExpiryDate": DATE, "IsRestoreInProgress": False}, True),
        ({"RestoreExpiryDate": DATE, "IsRestoreInProgress": True}, False),
        ({"IsRestoreInProgress": False}, False),
        ({"IsRestoreInProgress": True}, False),
        ({}, False),
        (None, False),
    ],
)
def test_restored_is_an_object_whose_restore_has_ended(status: Any, restored: bool) -> None:
    (ref,) = objects(LEAST | {"RestoreStatus": status}).refs
    assert ref.restored is restored


@pytest.mark.parametrize("name", LEAST)
def test_entry_that_lacks_an_element(name: str) -> None:
    assert refused(objects, without(LEAST, name)) == f"{name} is missing"
    entry = {"IsTruncated": False, "Versions": [without(LEAST | {"VersionId": "v"}, name)]}
    assert refused(replies.page, VERSIONS, entry, action="ListObjectVersions") == f"{name} is missing"


@pytest.mark.parametrize(
    ("encoding", "key", "expected"),
    [("url", "a+b%2Fc%2B%C3%A9", "a b/c+\u00e9"), ("url", "a/b", "a/b"), (None, "a+b%2F", "a+b%2F")],
)
def test_keys_are_decoded_where_the_server_says_that_it_encodes_them(
    encoding: str | None, key: str, expected: str
) -> None:
    (ref,) = objects(LEAST | {"Key": key}, EncodingType=encoding).refs
    assert ref.key == expected
    page = replies.page(
        VERSIONS,
        {
            "IsTruncated": True,
            "NextKeyMarker": key,
            "Versions": [LEAST | {"Key": key, "VersionId": "v"}],
            "DeleteMarkers": [{"Key": key}],
            "EncodingType": encoding,
        },
    )
    assert (page.refs[0].key, page.delete_markers, page.next) == (expected, (expected,), Position(key_marker=expected))


def test_key_that_is_none() -> None:
    assert refused(objects, LEAST | {"Key": ""}) == "a key is empty"
    assert "is not UTF-8" in refused(lambda: objects(LEAST | {"Key": "a%FF"}, EncodingType="url"))


def test_pages_go_on_or_end() -> None:
    assert objects(IsTruncated=True, NextContinuationToken="t").next == Position(token="t")
    assert replies.page(ListQuery(), {"IsTruncated": False, "NextContinuationToken": "t"}) == Page((), None)
    assert refused(replies.page, ListQuery(), {}) == "IsTruncated is missing"
    assert refused(replies.page, ListQuery(), {"IsTruncated": True}) == "NextContinuationToken is missing"


def test_versions() -> None:
    entry = LEAST | {"VersionId": "v", "IsLatest": True}
    reply = {"IsTruncated": True, "NextKeyMarker": "k", "NextVersionIdMarker": "v", "Versions": [entry]}
    page = replies.page(VERSIONS, reply)
    assert (page.refs[0].version_id, page.next) == ("v", Position(key_marker="k", version_id_marker="v"))
    assert replies.page(VERSIONS, reply | {"NextVersionIdMarker": ""}).next == Position(key_marker="k")
    assert replies.page(VERSIONS, {"IsTruncated": False}) == Page((), None)
    for lacking, name in (
        ({"IsTruncated": False, "Versions": [LEAST]}, "VersionId"),
        ({"IsTruncated": False, "DeleteMarkers": [{}]}, "Key"),
        (without(reply, "NextKeyMarker"), "NextKeyMarker"),
        (without(reply, "IsTruncated"), "IsTruncated"),
    ):
        assert refused(replies.page, VERSIONS, lacking, action="ListObjectVersions") == f"{name} is missing"


# ---- ACL and the body


@pytest.mark.parametrize(
    ("grantee", "name"),
    [
        ({"ID": "g"}, "g"),
        ({"URI": ALL_USERS}, ALL_USERS),
        ({"ID": "all-users"}, ALL_USERS),
        ({"URI": f"\n {ALL_USERS} ", "ID": "g"}, ALL_USERS),
        ({"URI": "", "ID": "g"}, "g"),
    ],
)
def test_grantee(grantee: dict[str, str], name: str) -> None:
    reply = {"Owner": {"ID": " o\n"}, "Grants": [{"Grantee": grantee, "Permission": " READ "}]}
    assert replies.acl("GetObjectAcl", reply) == Acl("o", (Grant(name, "READ"),))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"Owner": None}, "Owner is missing"),
        ({"Owner": {}}, "ID is missing"),
        ({"Grants": None}, "Grants is missing"),
        ({"Grants": [{"Permission": "READ"}]}, "Grantee is missing"),
        ({"Grants": [{"Grantee": {"ID": "g"}}]}, "Permission is missing"),
        ({"Grants": [{"Grantee": {}, "Permission": "READ"}]}, "a grantee without ID or URI"),
        ({"Grants": [{"Grantee": {"ID": " "}, "Permission": "READ"}]}, "a grantee without ID or URI"),
        ({"Grants": [{"Grantee": {"ID": "g"}, "Permission": "R" * 50}]}, f"'{'R' * 40}' is not a permission"),
    ],
)
def test_acl_that_lacks_an_element(changes: dict[str, Any], message: str) -> None:
    assert refused(replies.acl, "ACL", {"Owner": {"ID": "o"}, "Grants": []} | changes, action="ACL") == message


@pytest.mark.parametrize(
    ("encoding", "decoded", "sent"),
    [
        ("utf-8", "plain ", b"plain"),
        ("utf-8", "caf\u00e9\t", b"caf\xc3\xa9"),
        ("latin-1", "caf\u00c3\u00a9 ", b"caf\xc3\xa9"),
        ("latin-1", "caf\u00e9\t", b"caf\xe9"),
    ],
)
def test_headers_as_the_server_sent_them(encoding: str, decoded: str, sent: bytes) -> None:
    reply = {"ResponseMetadata": {"HTTPHeaders": {"x-amz-meta-a": decoded}}}
    assert headers_of(reply, encoding) == {b"x-amz-meta-a": sent}
    expires = {"ExpiresString": f" {decoded}", "ResponseMetadata": {"HTTPHeaders": {"etag": '"e"'}}}
    assert headers_of(expires, encoding) == {b"etag": b'"e"', b"expires": sent}


@pytest.mark.parametrize(
    ("content_range", "span", "fits"),
    [
        (None, None, True),
        ("bytes 0-2/3", None, False),
        (None, Span(0), False),
        ("bytes 0-2/3", Span(0), True),
        ("bytes 5-9/10", Span(5, 9), True),
        ("bytes 5-8/9", Span(5, 9), True),
        ("bytes 5-10/20", Span(5, 9), False),
        ("bytes 4-9/10", Span(5, 9), False),
        ("bytes 50-90/100", Span(5, 90), False),
        ("bytes 5-x/10", Span(5), False),
        ("bytes 5-", Span(5), False),
        ("bytes 5-9", Span(5, 9), True),
        ("items 5-9/10", Span(5, 9), False),
    ],
)
def test_span(content_range: str | None, span: Span | None, fits: bool) -> None:
    if fits:
        headers.check_span(content_range, span)
    else:
        assert "another span than asked for" in refused(headers.check_span, content_range, span, action="GetObject")
