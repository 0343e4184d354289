"""Documents with a repeated or misplaced element are unread: one half would be lost."""

from __future__ import annotations

import pytest

from auditor.errors import CallFailed
from auditor.model.object import ALL_USERS
from auditor.s3.engines import parse_xml as documents
from auditor.s3.engines.base import ListQuery

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


@pytest.mark.parametrize("name", ACLS)
def test_acl_of_which_half_would_be_lost(name: str) -> None:
    said = ACLS[name]
    inner = said if "<Owner>" in said else f"{OWNER}<AccessControlList>{said}</AccessControlList>"
    with pytest.raises(CallFailed) as caught:
        documents.acl("GetObjectAcl", f"<AccessControlPolicy>{inner}</AccessControlPolicy>".encode())
    assert caught.value.code == "Malformed"


@pytest.mark.parametrize("name", PAGES)
def test_page_of_which_half_would_be_lost(name: str) -> None:
    with pytest.raises(CallFailed) as caught:
        documents.page(ListQuery(), f"<ListBucketResult>{PAGES[name]}</ListBucketResult>".encode())
    assert caught.value.code == "Malformed"


def test_body_larger_than_any_acl_or_error_is_not_parsed() -> None:
    gap = b" " * documents.LARGEST_ACL
    acl = b"<AccessControlPolicy>%s%s<AccessControlList/></AccessControlPolicy>" % (OWNER.encode(), gap)
    with pytest.raises(CallFailed) as caught:
        documents.acl("GetObjectAcl", acl)
    assert caught.value.code == "Malformed"
    assert documents.error_of(b"<Error><Code>NoSuchKey</Code>%s</Error>" % gap) == ("", "")


def test_several_algorithms_of_one_object_are_no_repetition() -> None:
    algorithms = "<ChecksumAlgorithm>SHA256</ChecksumAlgorithm><ChecksumAlgorithm>CRC32</ChecksumAlgorithm>"
    body = f"<ListBucketResult>{END}<Contents>{ENTRY}{algorithms}</Contents></ListBucketResult>"
    (ref,) = documents.page(ListQuery(), body.encode()).refs
    assert ref.checksum_algorithms == ("SHA256", "CRC32")
