"""A run that lists everything but could not read some of it is "listing complete", in amber."""

from __future__ import annotations

import pytest

from auditor.model.finding import RuleUndecided
from auditor.model.summary import Summary
from auditor.reports.formats.base import coverage_sentence
from auditor.reports.page.build import headline
from auditor.reports.summary import completeness
from auditor.reports.terminal import coverage_line
from tests.support.samples.reports import denied, judged, sample_summary, tally_of

UNREAD = sample_summary(tally_of(*(denied(f"k{number}") for number in range(20))))


@pytest.mark.parametrize(
    ("summary", "words", "tone"),
    [
        (sample_summary(tally_of(judged("a"))), "complete", "ok"),
        (UNREAD, "listing complete", "warn"),
        (
            sample_summary(rules_undecided=(RuleUndecided("B02", "GetBucketPolicy", "AccessDenied"),)),
            "listing complete",
            "warn",
        ),
        (sample_summary(complete=False), "NOT COMPLETE", "warn"),
    ],
)
def test_complete_means_that_everything_was_looked_at(summary: Summary, words: str, tone: str) -> None:
    assert completeness(summary) == words
    assert coverage_sentence(summary).startswith(f"{words}: ")
    assert f": {words}" in coverage_line(summary)
    chip = headline(summary, ()).chips[0]
    assert (chip.text.removeprefix("✓ "), chip.tone) == (words.lower(), tone)
    assert chip.text.startswith("✓") is (tone == "ok")
