"""The page of a verification: its outcomes add up, and text from the bucket stays text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from auditor.model.digest import VerifyOutcome
from auditor.model.summary import Amount
from auditor.model.target import Target
from auditor.verify.outcome import Verified
from auditor.verify.page import Examples, verify_page
from auditor.verify.summary import LateReads, UnreadableCount, VerifySummary
from tests.reports.page.test_audit_page import HOSTILE, Page

CLEAN: Final = VerifySummary(
    run="20260102T030405Z-0a1b2c",
    out="runs/bucket=audited/verify=20260102T030405Z-0a1b2c",
    target=Target("audited"),
    engine="direct",
    due="all",
    complete=True,
    listed=9,
    ledger_only=0,
    delete_markers=0,
    outcomes={outcome.value: 9 if outcome is VerifyOutcome.MATCH else 0 for outcome in VerifyOutcome},
    unreadable=(),
    left_for_cost={},
    read=Amount(9, 9_000),
    recorded=0,
    unnoted=0,
    late=LateReads(0, 0),
    accepted={},
    holes=(),
    seconds=1.5,
    resume=None,
)


def summary(outcomes: Mapping[str, int], **changes: object) -> VerifySummary:
    found = {outcome.value: outcomes.get(outcome.value, 0) for outcome in VerifyOutcome}
    return replace(CLEAN, outcomes=found, listed=sum(found.values()), **changes)


def words(found: VerifySummary, examples: Examples | None = None, *, part: bool = False) -> str:
    return " ".join(Page(verify_page(found, examples or Examples(), part=part)).text.split())


def test_page_says_what_was_found_with_examples() -> None:
    said = words(CLEAN)
    assert "No object that was read is damaged, and none is missing." in said
    assert "9 match = 9 listed or in the ledger" in said
    assert "No object that was compared needs attention." in said
    examples = Examples()
    for at in range(30):
        examples.add(Verified(key=f"media/{at:02}", outcome=VerifyOutcome.MISMATCH))
    said = words(summary({"match": 5, "mismatch": 30, "missing": 1}, complete=False), examples, part=True)
    assert "Not complete. Damaged, missing or lost: 31 objects." in said
    assert "5 match + 30 mismatch + 1 missing = 36 listed or in the ledger" in said
    assert "media/00 + 29" in said
    assert "media/19" in said
    assert "media/20" not in said
    assert "/combined-*.gz | jq -ac 'select(.outcome == \"mismatch\") | .key'" in said
    assert "of the last invocation alone" in said


def test_nothing_read_is_not_called_undamaged() -> None:
    said = words(summary({"not_due": 4}, read=Amount(), holes=("nothing was compared",)))
    assert "No object was read." in said
    assert "is damaged" not in said
    assert "Hole: nothing was compared." in said


def test_hostile_words_stay_words() -> None:
    def page_of(word: str) -> Page:
        examples = Examples()
        examples.add(Verified(key=word, outcome=VerifyOutcome.UNREADABLE, version_id=word, detail={"code": word}))
        made = summary({"unreadable": 1}, unreadable=(UnreadableCount(word, 1),), target=Target("audited", word))
        return Page(verify_page(made, examples))

    plain = page_of("plain")
    hostile = {ascii(text): page_of(text) for text in HOSTILE}
    failures = [
        text
        for text, page in hostile.items()
        if sorted(page.tags) != sorted(plain.tags) or page.attributes != plain.attributes
    ]
    assert not failures, failures
