"""Each reason has its sentence, each audience its words, and hostile text stays on its line."""

from __future__ import annotations

from typing import Any

from auditor.model.access import Audience, AudienceKind, ObjectAccess, Reason, ReasonCode, Verdict
from auditor.model.object import ALL_USERS
from auditor.offline.explanation import (
    Explanation,
    render,
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
