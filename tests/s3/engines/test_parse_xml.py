"""Documents with a repeated or misplaced element are unread: one half would be lost."""

from __future__ import annotations

import pytest

from auditor.errors import CallFailed
from auditor.model.object import ALL_USERS, Acl, Grant
from auditor.s3.engines import xml_answers as documents
from auditor.s3.engines.base import ListQuery, Page, Position

OWNER = "<Owner><ID>o</ID></Owner>"
EVERYONE = f"<Grantee><URI>{ALL_USERS}</URI></Grantee>"
SOMEONE = "<Grantee><ID>a</ID></Grantee>"
READ = "<Permission>READ</Permission>"
GRANT = f"<Grant>{EVERYONE}{READ}</Grant>"
ENTRY = "<Key>k</Key><ETag>e</ETag><Size>1</Size><LastModified>2026-01-02T03:04:05Z</LastModified>"

ACLS = {
    "a list of grants, and an empty one": f"{OWNER}<AccessControlList>{GRANT}</AccessControlList><AccessControlList/>",
    "two owners": f"{OWNER}<Owner><ID>p</ID></Owner><AccessControlList/>",
    "an owner with two IDs": "<Owner><ID>o</ID><ID>p</ID></Owner><AccessControlList/>",
    "a grant of two permissions": f"<Grant>{EVERYONE}{READ}<Permission>WRITE</Permission></Grant>",
    "a grant to two grantees": f"<Grant>{EVERYONE}{SOMEONE}{READ}</Grant>",
    "a grantee with two URIs": f"<Grant><Grantee><URI>{ALL_USERS}</URI><URI>b</URI></Grantee>{READ}</Grant>",
    "a grant without a permission": f"<Grant>{EVERYONE}<Permission/></Grant>",
    "a list in the list": f"<AccessControlList>{GRANT}</AccessControlList>",
    "a grant by another name": f"<grant>{EVERYONE}{READ}</grant>",
}
MORE = "<IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken>"
END = "<IsTruncated>false</IsTruncated>"
PAGES = {
    "an end, and more": f"{MORE}{END}",
    "two tokens": f"{MORE}<NextContinuationToken>u</NextContinuationToken>",
    "a key twice": f"{END}<Contents>{ENTRY}<Key>l</Key></Contents>",
    "an owner with two IDs": f"{END}<Contents>{ENTRY}<Owner><ID>o</ID><ID>p</ID></Owner></Contents>",
}


def test_document_of_which_half_would_be_lost() -> None:
    for name, said in ACLS.items():
        inner = said if "<Owner>" in said else f"{OWNER}<AccessControlList>{said}</AccessControlList>"
        with pytest.raises(CallFailed) as caught:
            documents.acl("GetObjectAcl", f"<AccessControlPolicy>{inner}</AccessControlPolicy>".encode())
        assert (caught.value.action, caught.value.code) == ("GetObjectAcl", "Malformed"), name
    for name, said in PAGES.items():
        with pytest.raises(CallFailed) as caught:
            documents.page(ListQuery(), f"<ListBucketResult>{said}</ListBucketResult>".encode())
        assert caught.value.code == "Malformed", name


def test_word_that_is_no_boolean_is_named_and_cut() -> None:
    with pytest.raises(CallFailed) as caught:
        documents.page(ListQuery(), f"<r><IsTruncated>{'maybe' * 5}</IsTruncated></r>".encode())
    assert caught.value.message == f"IsTruncated is {'maybe' * 4!r}, which is neither true nor false"


def page_of(body: str, versions: bool = False) -> Page:
    return documents.page(ListQuery(versions=versions), f"<r xmlns='http://s3'>{body}</r>".encode())


def test_page_with_everything() -> None:
    entry = (
        f"<Contents>{ENTRY}<StorageClass>GLACIER</StorageClass><Owner><ID>o</ID><DisplayName/></Owner>"
        "<ChecksumAlgorithm>SHA256</ChecksumAlgorithm><ChecksumAlgorithm>CRC32</ChecksumAlgorithm>"
        "<RestoreStatus><IsRestoreInProgress>false</IsRestoreInProgress>"
        "<RestoreExpiryDate>2027-01-02T00:00:00Z</RestoreExpiryDate></RestoreStatus></Contents>"
    )
    restoring = entry.replace("false", "true").replace("<Key>k", "<Key>l")
    prefixes = "<CommonPrefixes><Prefix>a</Prefix></CommonPrefixes>" * 2
    page = page_of(f"{MORE}<EncodingType>url</EncodingType>{entry}{restoring}{prefixes}")
    assert [(ref.key, ref.restored) for ref in page.refs] == [("k", True), ("l", False)]
    assert (page.refs[0].owner, page.refs[0].storage_class) == ("o", "GLACIER")
    assert page.refs[0].checksum_algorithms == ("SHA256", "CRC32")
    assert page.refs[0].last_modified == "2026-01-02T03:04:05Z"
    assert page.next == Position(token="t")
    assert page_of(" <IsTruncated> False </IsTruncated>").next is None


def test_page_of_versions() -> None:
    version = f"<Version>{ENTRY}<VersionId>v</VersionId><IsLatest>%s</IsLatest></Version>"
    marker = "<DeleteMarker><Key>m%d</Key><IsLatest>true</IsLatest></DeleteMarker>"
    markers = "<NextKeyMarker>k</NextKeyMarker><NextVersionIdMarker>w</NextVersionIdMarker>"
    body = f"{MORE}{markers}{version % 'true'}{version % 'false'}{marker % 1}{marker % 2}"
    page = page_of(body, versions=True)
    assert [(ref.version_id, ref.is_latest) for ref in page.refs] == [("v", True), ("v", False)]
    assert page.delete_markers == ("m1", "m2")
    assert page.next == Position(key_marker="k", version_id_marker="w")


@pytest.mark.parametrize(
    "body",
    [
        "<IsTruncated>yes</IsTruncated>",
        "<IsTruncated/>",
        f"{END}<Contents>{ENTRY.replace('2026-01', '2026-13')}</Contents>",
        f"{END}<Contents>{ENTRY.replace('<Size>1', '<Size>one')}</Contents>",
        f"{END}<Contents>{ENTRY}<Owner><ID>o</ID><ID>o</ID></Owner></Contents>",
    ],
)
def test_page_with_a_value_that_is_none(body: str) -> None:
    for versions in (False, True):
        with pytest.raises(CallFailed) as caught:
            page_of(body.replace("Contents", "Version" if versions else "Contents"), versions)
        assert (caught.value.code, caught.value.status) == ("Malformed", 200)
        assert caught.value.action == ("ListObjectVersions" if versions else "ListObjectsV2")


@pytest.mark.parametrize("grants", [0, 1, 100])
def test_acl_of_any_size(grants: int) -> None:
    body = f"<r>{OWNER}<AccessControlList>{GRANT * grants}</AccessControlList></r>"
    assert documents.acl("GetObjectAcl", body.encode()) == Acl("o", (Grant(ALL_USERS, "READ"),) * grants)


def test_element_beside_the_grants_is_passed_over() -> None:
    grants = f"<AccessControlList>{GRANT}</AccessControlList>"
    for body in (f"{OWNER}{grants}<New/>", f"<New><Grant/></New>{OWNER}{grants}"):
        assert documents.acl("GetObjectAcl", f"<r>{body}</r>".encode()) == Acl("o", (Grant(ALL_USERS, "READ"),))


@pytest.mark.parametrize(
    ("body", "code", "status", "message"),
    [
        (b"", "Malformed", 200, "the answer is empty"),
        (b"no xml", "500", 500, "the answer is no XML"),
        (b"<!DOCTYPE r [<!ENTITY e 'many'>]><r>&e;</r>", "500", 500, "the answer is no XML"),
        (b"<r>" + b"<a/>" * documents.MOST_TAGS + b"</r>", "500", 500, "the answer is no XML"),
        (b"<Error><Code> SlowDown </Code><Message>m</Message></Error>", "SlowDown", 500, "m"),
        (b"<Error/>", "500", 500, ""),
        (b"<Error><Code>%s</Code></Error>" % (b"c" * 200), "c" * 100, 500, ""),
    ],
)
def test_answer_of_status_200_that_is_none(body: bytes, code: str, status: int, message: str) -> None:
    with pytest.raises(CallFailed) as caught:
        documents.root_of("GetObjectAcl", body)
    assert (caught.value.code, caught.value.status) == (code, status)
    assert caught.value.message.startswith(message)


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (b"<Error><Code> NoSuchKey</Code><Message>m</Message></Error>", ("NoSuchKey", "m")),
        (b"<Error xmlns='x'><Code>NoSuchKey</Code></Error>", ("NoSuchKey", "")),
        (b"<ErrorResponse><Error><Code>c</Code><Message>m</Message></Error><RequestId/></ErrorResponse>", ("c", "m")),
        (b"<Error><Message>m</Message></Error>", ("", "m")),
        (b"<Error><Code/></Error>", ("", "")),
        (b"<html>", ("", "")),
        (b"no xml", ("", "")),
        (b"<!DOCTYPE r [<!ENTITY e 'many'>]><Error><Code>&e;</Code></Error>", ("", "")),
    ],
)
def test_error_document(body: bytes, found: tuple[str, str]) -> None:
    assert documents.error_of(body) == found


def test_body_larger_than_any_acl_or_error_is_not_parsed() -> None:
    gap = b" " * documents.LARGEST_ACL
    acl = b"<AccessControlPolicy>%s%s<AccessControlList/></AccessControlPolicy>" % (OWNER.encode(), gap)
    with pytest.raises(CallFailed) as caught:
        documents.acl("GetObjectAcl", acl)
    assert caught.value.code == "Malformed"
    assert documents.error_of(b"<Error><Code>NoSuchKey</Code>%s</Error>" % gap) == ("", "")
