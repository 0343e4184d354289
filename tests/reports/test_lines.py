"""The lines of a run folder are those of the contract, whatever the key."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from auditor.model.access import Audience, AudienceKind, ObjectAccess, Reason, ReasonCode, Verdict
from auditor.model.finding import Finding, Judgement, Severity, fingerprint
from auditor.model.json_codec import JsonError, encode_line, plain
from auditor.model.line_records import encode_object, finding_line, read_line, undecided_line
from auditor.model.object import ALL_USERS, Acl, Grant, Head, Skipped, Unread
from auditor.model.run_lines import FindingLine, ObjectLine
from tests.support.odd_keys import ODD_KEYS
from tests.support.samples.reports import OWNER, denied, finding, gone, judged

FLAT = ("prefix1", "acl_state", "public_grant", "head_state", "public")
MEMBERS = [
    "key", "prefix1", "version_id", "etag", "size", "last_modified", "storage_class", "owner", "acl_state",
    "public_grant", "acl", "head_state", "head", "outcome", "changed", "latest", "public", "verdict", "audience",
    "reasons", "rules", "hashed", "since", "exception",
]  # fmt: skip


def object_line(judgement: Judgement, hashed: bool | None, keep_metadata: bool = False) -> dict[str, Any]:
    """The line of an object, parsed."""
    line: dict[str, Any] = json.loads(encode_object(judgement, hashed, keep_metadata))
    return line


def test_audited_object() -> None:
    judgement = judged("k", finding("k", "O05"), finding("k"), finding("k"), version_id="v1")
    line = object_line(judgement, hashed=True)
    assert list(line) == MEMBERS
    assert line["acl"] == {"owner": OWNER, "grants": [{"grantee": OWNER, "permission": "FULL_CONTROL"}]}
    assert line["version_id"] == "v1"
    assert line["outcome"] == "audited"
    assert line["verdict"] == "private"
    assert line["rules"] == ["O02", "O05"]
    assert line["hashed"] is True


@pytest.mark.parametrize(
    ("judgement", "flat"),
    [
        (judged("a/b/c"), ("a/", "read", False, "read", False)),
        (judged("/a", verdict=Verdict.EXPOSED), ("/", "read", False, "read", True)),
        (
            judged("a", verdict=Verdict.MASKED, acl=Acl(OWNER, (Grant(ALL_USERS, "WRITE"),))),
            ("", "read", True, "read", False),
        ),
        (judged("a", verdict=Verdict.SHARED, acl=Skipped("off")), ("", "skipped", None, "read", False)),
        (denied("é/"), ("é/", "unread", None, "skipped", None)),
        (gone("a"), ("", "unread", None, "read", None)),
    ],
)
def test_flat_members_say_nothing_of_a_fact_that_was_not_read(judgement: Judgement, flat: tuple[object, ...]) -> None:
    line = object_line(judgement, None)
    assert tuple(line[name] for name in FLAT) == flat
    read = read_line(ObjectLine, encode_line(line))
    assert tuple(getattr(read, name) for name in FLAT) == flat


@pytest.mark.parametrize("fact", ["acl", "head"])
@pytest.mark.parametrize(
    ("member", "value", "missing"),
    [
        ("unread", {"action": "A", "code": "AccessDenied"}, Unread("A", "AccessDenied")),
        ("skipped", "not asked", Skipped("not asked")),
    ],
)
def test_fact_that_says_it_was_not_read_is_not_read_whatever_its_other_members(
    fact: str, member: str, value: object, missing: object
) -> None:
    line = object_line(judged("k"), None)
    line[fact][member] = value
    assert getattr(read_line(ObjectLine, encode_line(line)), fact) == missing


@pytest.mark.parametrize("member", Head.__struct_fields__)
def test_member_that_a_line_lacks_is_no_header_that_s3_did_not_send(member: str) -> None:
    line = object_line(judged("k"), None)
    del line["head"][member]
    with pytest.raises(JsonError, match="head lacks a member"):
        read_line(ObjectLine, encode_line(line))


def test_access_in_texts_and_back() -> None:
    access = ObjectAccess(
        Verdict.SHARED,
        (Audience(AudienceKind.ORGANIZATION, "o-1", "vpc-endpoint vpce-1"), Audience(AudienceKind.ACCOUNT, "4" * 12)),
        (Reason(ReasonCode.POLICY_ALLOW, "Partners"), Reason(ReasonCode.ACLS_DISABLED)),
    )
    line = object_line(replace(judged("k"), access=access), None)
    assert line["verdict"] == "shared"
    assert line["audience"] == ["organization o-1 through vpc-endpoint vpce-1", "account 444444444444"]
    assert line["reasons"] == ["policy-allow: Partners", "acls-disabled"]
    read = read_line(ObjectLine, encode_line(line))
    assert tuple(map(Audience.parse, read.audience)) == access.audience
    assert tuple(map(Reason.parse, read.reasons)) == access.reasons


def test_head_has_every_member_and_null_where_absent() -> None:
    head = object_line(judged("k"), None)["head"]
    assert set(head) == set(Head.__struct_fields__)
    assert head["content_length"] == 3
    assert head["server_side_encryption"] is None


def test_metadata_names_only_unless_asked() -> None:
    assert object_line(judged("k"), None)["head"]["metadata"] == ["build", "team"]
    kept = object_line(judged("k"), None, keep_metadata=True)["head"]["metadata"]
    assert kept == {"build": "7", "team": "x"}


def test_facts_that_are_not_there() -> None:
    line = object_line(judged("k", acl=Skipped("ACLs are disabled"), head=Unread("HeadObject", "403")), None)
    assert line["acl"] == {"skipped": "ACLs are disabled"}
    assert line["head"] == {"unread": {"action": "HeadObject", "code": "403"}}
    assert line["outcome"] == "undecided"


def test_vanished_object_has_no_verdict() -> None:
    line = object_line(replace(gone("k"), access=ObjectAccess(Verdict.PRIVATE)), None)
    assert line["outcome"] == "vanished"
    assert line["verdict"] is None


def test_finding_has_the_members_of_the_contract() -> None:
    line = finding_line(Finding("f" * 32, "O02", Severity.HIGH, "k", None, ALL_USERS, "READ", "anyone"))
    assert plain(line) == {
        "fingerprint": "f" * 32,
        "rule": "O02",
        "severity": "high",
        "key": "k",
        "version_id": None,
        "grantee": ALL_USERS,
        "permission": "READ",
        "message": "anyone",
        "verdict": None,
        "since": None,
        "exception": None,
    }
    assert read_line(FindingLine, encode_line(line)) == line


def test_finding_knows_the_verdict_of_its_object() -> None:
    line = finding_line(finding("k"), Verdict.MASKED)
    assert read_line(FindingLine, encode_line(line)).verdict is Verdict.MASKED


def test_undecided_line_only_for_the_undecided() -> None:
    assert plain(undecided_line(denied("k"))) == {
        "key": "k",
        "version_id": None,
        "unread": [{"action": "GetObjectAcl", "code": "AccessDenied"}],
        "rules": ["O01", "O02"],
    }
    assert undecided_line(judged("k")) is None
    assert undecided_line(gone("k")) is None


@pytest.mark.parametrize("key", ODD_KEYS.values(), ids=ascii)
def test_odd_keys_come_back_unchanged_from_one_line(key: str) -> None:
    data = encode_object(judged(key), None)
    assert data.count(b"\n") == 1
    assert data.endswith(b"\n")
    assert json.loads(data)["key"] == key


def test_text_without_utf_8_is_written_as_question_marks() -> None:
    """S3 has no such key; a header may hold such a text."""
    assert json.loads(encode_object(judged("a\ud800"), None))["key"] == "a?"


def test_unicode_is_written_as_it_is() -> None:
    assert encode_line({"key": "é"}) == '{"key":"é"}\n'.encode()


def test_fingerprint_is_stable_for_ever() -> None:
    assert fingerprint("b", "k", "O02", ALL_USERS, "READ") == "f697c8f34e14ef3456cb50ba7714dc29"
    assert fingerprint("b", None, "B01", None, None) == "778a06d09c8a510deda0298a4056fabd"


def test_fingerprint_depends_on_each_part() -> None:
    parts = [
        ("b", "k", "O02", "g", "READ"),
        ("c", "k", "O02", "g", "READ"),
        ("b", "l", "O02", "g", "READ"),
        ("b", None, "O02", "g", "READ"),
        ("b", "k", "O04", "g", "READ"),
        ("b", "k", "O02", "h", "READ"),
        ("b", "k", "O02", "g", "WRITE"),
        ("b", "k", "O02", "g", None),
        ("b", "\udcff", "O02", "g", "READ"),
    ]
    seen = {fingerprint(*part) for part in parts} | {fingerprint(*parts[0], version_id="null")}
    assert len(seen) == len(parts) + 1
    assert all(len(mark) == 32 for mark in seen)


def test_grants_keep_their_order() -> None:
    acl = Acl(OWNER, (Grant("z", "READ"), Grant("a", "WRITE")))
    line = object_line(Judgement(judged("k", acl=acl).evidence, ObjectAccess(Verdict.SHARED), (), ()), False)
    assert [grant["grantee"] for grant in line["acl"]["grants"]] == ["z", "a"]
    assert line["hashed"] is False
