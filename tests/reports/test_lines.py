"""The lines of a run folder are those of the contract, whatever the key."""

from __future__ import annotations

import json
from typing import Any

import pytest

from auditor.model.access import Verdict
from auditor.model.finding import Judgement, fingerprint
from auditor.model.json_codec import JsonError, encode_line, plain
from auditor.model.line_records import encode_object, read_line
from auditor.model.object import ALL_USERS, Acl, Grant, Head, Skipped, Unread
from auditor.model.run_lines import ObjectLine
from tests.support.samples.reports import OWNER, denied, gone, judged

FLAT = ("prefix1", "acl_state", "public_grant", "head_state", "public")


def object_line(judgement: Judgement, hashed: bool | None) -> dict[str, Any]:
    """The line of an object, parsed."""
    line: dict[str, Any] = json.loads(encode_object(judgement, hashed))
    return line


def test_text_without_utf_8_is_written_as_question_marks() -> None:
    """S3 has no such key; a header may hold such a text."""
    assert json.loads(encode_object(judged("a\ud800"), None))["key"] == "a?"


def test_fingerprint_is_stable_for_ever() -> None:
    assert fingerprint("b", "k", "O02", ALL_USERS, "READ") == "f697c8f34e14ef3456cb50ba7714dc29"
    assert fingerprint("b", None, "B01", None, None) == "778a06d09c8a510deda0298a4056fabd"


def test_flat_members_say_nothing_of_a_fact_that_was_not_read() -> None:
    cases = [
        (judged("a/b/c"), ("a/", "read", False, "read", False)),
        (judged("/a", verdict=Verdict.EXPOSED), ("/", "read", False, "read", True)),
        (
            judged("a", verdict=Verdict.MASKED, acl=Acl(OWNER, (Grant(ALL_USERS, "WRITE"),))),
            ("", "read", True, "read", False),
        ),
        (judged("a", verdict=Verdict.SHARED, acl=Skipped("off")), ("", "skipped", None, "read", False)),
        (denied("é/"), ("é/", "unread", None, "skipped", None)),
        (gone("a"), ("", "unread", None, "read", None)),
    ]
    for judgement, flat in cases:
        line = object_line(judgement, None)
        assert tuple(line[name] for name in FLAT) == flat
        read = read_line(ObjectLine, encode_line(line))
        assert tuple(getattr(read, name) for name in FLAT) == flat


def test_fact_that_says_it_was_not_read_is_not_read_whatever_its_other_members() -> None:
    unread, skipped = Unread("A", "AccessDenied"), Skipped("not asked")
    for fact in ("acl", "head"):
        for member, value, missing in (("unread", plain(unread), unread), ("skipped", "not asked", skipped)):
            line = object_line(judged("k"), None)
            line[fact][member] = value
            assert getattr(read_line(ObjectLine, encode_line(line)), fact) == missing


def test_member_that_a_line_lacks_is_no_header_that_s3_did_not_send() -> None:
    for member in Head.__struct_fields__:
        line = object_line(judged("k"), None)
        del line["head"][member]
        with pytest.raises(JsonError, match="head lacks a member"):
            read_line(ObjectLine, encode_line(line))
