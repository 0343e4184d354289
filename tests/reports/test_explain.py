"""Each reason has its sentence, each audience its words, and hostile text stays on its line."""

from __future__ import annotations

from typing import Any

from auditor.model.access import Audience, AudienceKind, ObjectAccess, Reason, ReasonCode, Verdict
from auditor.model.object import ALL_USERS, ANONYMOUS_OWNER, LOG_DELIVERY
from auditor.reports.explain import (
    SENTENCES,
    Explanation,
    ReasonGroup,
    render,
    sentences_of,
)
from auditor.reports.phrases import words_of

PUBLIC = ObjectAccess(
    Verdict.EXPOSED, (Audience(AudienceKind.ANYONE),), (Reason(ReasonCode.ACL_GRANT, f"{ALL_USERS} READ"),)
)


def explanation(access: ObjectAccess = PUBLIC, **changes: Any) -> Explanation:
    values: dict[str, Any] = {
        "bucket": "audited",
        "key": "a",
        "version_id": None,
        "access": access,
        "not_looked_at": (),
    }
    return Explanation(**values | changes)


def test_a_sentence_names_the_cause_where_the_code_has_one() -> None:
    """`ReasonCode` documents which codes have a cause: those with a sentence that has a place for it."""
    without = {ReasonCode.CUSTOMER_KEY, ReasonCode.REQUESTER_PAYS, ReasonCode.ACLS_DISABLED, ReasonCode.OWNER_UNKNOWN}
    assert {code for code, (_, sentence) in SENTENCES.items() if "{}" not in sentence} == without


def test_a_public_object() -> None:
    assert render([explanation(not_looked_at=("the moon",))], 100) == (
        "s3://audited/a is exposed to anyone on the internet\n"
        "  opened by the ACL, which grants READ to everyone (AllUsers)\n"
        "not looked at:\n"
        "  the moon\n"
    )


def test_several_reasons_of_each_group() -> None:
    access = ObjectAccess(
        Verdict.MASKED,
        (),
        (
            Reason(ReasonCode.ACL_GRANT, f"{ALL_USERS} READ"),
            Reason(ReasonCode.POLICY_ALLOW, "#2"),
            Reason(ReasonCode.POLICY_DENY, "NoOutsiders"),
            Reason(ReasonCode.NOT_BUCKET_OWNED, "#1"),
            Reason(ReasonCode.KEY_UNKNOWN, "s3:ExistingObjectTag/public"),
        ),
    )
    assert render([explanation(access)], 100).splitlines() == [
        "s3://audited/a is masked: nobody else gets in today",
        "  opened by the ACL, which grants READ to everyone (AllUsers)",
        "            the bucket policy, statement #2, which allows it",
        "  masked by the bucket policy, statement NoOutsiders, which denies it",
        "  closed by its owner, who is not the bucket's: the bucket policy, statement #1, allows nothing on it",
        "  unknown   s3:ExistingObjectTag/public, which a condition of the bucket policy checks",
    ]


def test_several_audiences() -> None:
    audiences = (Audience(AudienceKind.ACCOUNT, "444455556666"), Audience(AudienceKind.NETWORK, "203.0.113.0/24"))
    assert render([explanation(ObjectAccess(Verdict.SHARED, audiences))], 100).splitlines() == [
        "s3://audited/a is shared with account 444455556666",
        "  and network 203.0.113.0/24",
    ]


def test_a_private_object_without_a_reason() -> None:
    assert render([explanation(ObjectAccess(Verdict.PRIVATE))], 100) == (
        "s3://audited/a is private: nobody else gets in\n"
        "  opened by nothing: no grant, no statement of the bucket policy, no other owner\n"
    )


def test_owner_and_grantee_by_name() -> None:
    reasons = [
        Reason(ReasonCode.OBJECT_OWNER, ANONYMOUS_OWNER),
        Reason(ReasonCode.ACL_GRANT, f"{'b1' * 32} FULL_CONTROL"),
    ]
    assert list(sentences_of(reasons, ReasonGroup.OPENS)) == [
        "its owner, who is not the bucket's owner: everyone (the anonymous user)",
        f"the ACL, which grants FULL_CONTROL to {'b1' * 32}",
    ]


def test_a_group_that_has_a_name() -> None:
    assert words_of(Audience(AudienceKind.GROUP, LOG_DELIVERY)) == "S3's log delivery"
    assert words_of(Audience(AudienceKind.GROUP, "http://example.com/g")) == "the group http://example.com/g"


def test_the_document() -> None:
    assert explanation(run="20260102T030405Z-0a1b2c", key="a\x1b").to_dict() == {
        "bucket": "audited",
        "key": "a\x1b",
        "version_id": None,
        "run": "20260102T030405Z-0a1b2c",
        "renewed": None,
        "verdict": "exposed",
        "audience": ["anyone"],
        "reasons": [f"acl-grant: {ALL_USERS} READ"],
        "more": [],
        "opens": ["the ACL, which grants READ to everyone (AllUsers)"],
        "masks": [],
        "closes": [],
        "leaves_open": [],
        "stored": [],
        "not_looked_at": [],
    }


def test_every_verdict_and_audience_has_its_words() -> None:
    shown = render([explanation(ObjectAccess(verdict)) for verdict in Verdict], 100)
    assert [verdict for verdict in Verdict if f"s3://audited/a is {verdict}" not in shown] == []
    assert len({words_of(Audience(kind, "x")) for kind in AudienceKind}) == len(AudienceKind)


HOSTILE = ["a\x1b[2J", "a\nmasked by nothing", "\u202eb", "\ud800", "{}", "{0.__class__}"]


def test_hostile_text_stays_on_its_line() -> None:
    for text in HOSTILE:
        access = ObjectAccess(
            Verdict.EXPOSED,
            (Audience(AudienceKind.ACCOUNT, text, text),),
            tuple(Reason(code, text) for code in ReasonCode),
        )
        shown = render([explanation(access, key=text, version_id=text, not_looked_at=(text,))], 100)
        assert all(line.isprintable() for line in shown.split("\n")), ascii(text)
        assert len(shown.splitlines()) == 1 + len(ReasonCode) + 2, ascii(text)
        shown.encode()
