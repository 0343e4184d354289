"""Lines put together from pieces are those of the plain encoder, byte for byte, whatever stands in them."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import fields, replace

from auditor.model.access import Audience, AudienceKind, ObjectAccess, Reason, ReasonCode, Verdict
from auditor.model.finding import Finding, Judgement, Severity
from auditor.model.json_text import plain
from auditor.model.object import Acl, Evidence, Grant, Head, ObjectRef, Skipped, Unread
from auditor.model.standing import Standing
from auditor.reports.fast_lines import KEPT, OWN, encode_finding, encode_object
from auditor.reports.lines import encode_line, finding_line, object_line
from tests.support.odd_keys import ODD_KEYS
from tests.support.samples.reports import denied, finding, gone, judged

TEXT: Final = st.text(st.characters(exclude_categories=()), max_size=8) | st.sampled_from(['%s "', "%%", "\\", "é\n"])
VALUES: Final = {
    "str": TEXT,
    "str | None": st.none() | TEXT,
    "int": st.integers(0, 2**40),
    "int | None": st.none() | st.integers(0, 9),
    "bool | None": st.sampled_from([None, True, False]),
    "Mapping[str, str]": st.dictionaries(TEXT, TEXT, max_size=3),
}
UNREAD: Final = st.builds(Unread, TEXT, TEXT) | st.builds(Skipped, TEXT)
HEADS: Final = st.builds(Head, **{name: VALUES[Head.__annotations__[name]] for name in Head.__struct_fields__})
ACLS: Final = st.builds(Acl, TEXT, st.lists(st.builds(Grant, TEXT, TEXT), max_size=3).map(tuple))
REFS: Final = st.builds(
    ObjectRef,
    TEXT,
    TEXT,
    st.integers(0, 2**40),
    TEXT,
    version_id=st.none() | TEXT,
    owner=st.none() | TEXT,
    is_latest=st.booleans(),
)
EVIDENCE: Final = st.builds(Evidence, REFS, ACLS | UNREAD, HEADS | UNREAD, st.booleans(), st.booleans())
FINDINGS: Final = st.builds(
    Finding,
    TEXT,
    st.sampled_from(["O01", "E01", "K01"]),
    st.sampled_from(Severity),
    *[st.none() | TEXT] * 4,
    TEXT,
)
VERDICTS: Final = st.none() | st.sampled_from(Verdict)
AUDIENCES: Final = st.builds(Audience, st.sampled_from(AudienceKind), st.none() | TEXT, st.none() | TEXT)
REASONS: Final = st.builds(Reason, st.sampled_from(ReasonCode), st.none() | TEXT)
ACCESSES: Final = st.none() | st.builds(
    ObjectAccess,
    st.sampled_from(Verdict),
    st.lists(AUDIENCES, max_size=2).map(tuple),
    st.lists(REASONS, max_size=2).map(tuple),
)
JUDGEMENTS: Final = st.builds(Judgement, EVIDENCE, ACCESSES, st.lists(FINDINGS, max_size=3).map(tuple), st.just(()))


STANDINGS: Final = st.none() | st.builds(Standing, st.none() | TEXT, st.none() | st.booleans(), st.none() | TEXT)


@given(JUDGEMENTS, st.sampled_from([None, True, False]), st.booleans(), STANDINGS)
def test_any_object(judgement: Judgement, hashed: bool | None, keep: bool, standing: Standing | None) -> None:
    expected = encode_line(object_line(judgement, hashed, keep, standing))
    assert encode_object(judgement, hashed, keep, standing) == expected
    assert encode_object(judgement, hashed, keep, standing) == expected  # from what is kept by now


@given(FINDINGS, VERDICTS, STANDINGS)
def test_any_finding(found: Finding, verdict: Verdict | None, standing: Standing | None) -> None:
    assert encode_finding(found, verdict, standing) == encode_line(plain(finding_line(found, verdict, standing)))


@pytest.mark.parametrize("key", [*ODD_KEYS.values(), "\udcff lone", "a\ud800"], ids=ascii)
def test_odd_keys(key: str) -> None:
    judgement = judged(key, finding(key))
    assert encode_object(judgement, None) == encode_line(object_line(judgement, None))
    assert encode_finding(finding(key)) == encode_line(plain(finding_line(finding(key))))


@pytest.mark.parametrize("name", Head.__struct_fields__)
def test_each_member_of_head_is_that_of_its_object(name: str) -> None:
    """Two objects that differ in one member only: what is kept of the first must not stand in the second's line."""
    base = judged("k").evidence.head
    assert isinstance(base, Head)
    given: dict[str, Any] = {"content_length": 7, "metadata": {"other": "x"}, "bucket_key_enabled": True}
    for value in (given.get(name, "one"), given.get(name, "two")):
        judgement = judged("k", head=replace(base, **{name: value}))
        assert encode_object(judgement, None) == encode_line(object_line(judgement, None))
        assert encode_object(judged("k"), None) == encode_line(object_line(judged("k"), None))


@pytest.mark.parametrize(
    "judgement", [denied("k"), gone("k"), replace(gone("k"), access=ObjectAccess(Verdict.PRIVATE))]
)
def test_what_was_not_read(judgement: Judgement) -> None:
    assert encode_object(judgement, None) == encode_line(object_line(judgement, None))


def test_more_acls_than_are_kept() -> None:
    for number in (*range(2 * KEPT), 0, 1):
        judgement = judged("k", acl=Acl(f"owner {number}", ()))
        assert json.loads(encode_object(judgement, True))["acl"]["owner"] == f"owner {number}"


def test_own_members_are_members() -> None:
    assert {field.name for field in fields(Head)} >= OWN
