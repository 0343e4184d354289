"""The promises of single formats, over the hostile run; test_every_format.py has those of all."""

from __future__ import annotations

import io
import json

import pandas
import pytest

from auditor.model.access import Verdict
from auditor.model.summary import Summary
from auditor.offline.formats import FORMATS
from auditor.offline.formats.base import COLUMNS, FormatOptions
from auditor.offline.formats.csv import as_text, csv_row
from auditor.offline.formats.markdown import LONGEST
from auditor.offline.formats.ocsf import events
from auditor.reports.rollup import SUBJECTS
from tests.support.samples.hostile import HOSTILE, HostileRun, hostile_run, refused
from tests.support.samples.reports import denied, judged, sample_summary, tally_of

OPTIONS = FormatOptions(account="111122223333", region="eu-central-1")


def written(name: str, summary: Summary, run: HostileRun) -> str:
    text = "".join(FORMATS[name](summary, run, OPTIONS))
    text.encode()
    return text


@pytest.fixture(scope="module")
def hostile() -> tuple[Summary, HostileRun]:
    return hostile_run()


@pytest.mark.parametrize("name", [name for name in FORMATS if name not in {"json", "table"}])
def test_how_far_the_run_looked_is_always_said(name: str, hostile: tuple[Summary, HostileRun]) -> None:
    summary, run = hostile
    assert f"{summary.coverage.undecided:,} that could not be looked at" in written(name, summary, run)
    empty = sample_summary()
    assert "0 that could not be looked at" in written(name, empty, HostileRun(()))
    assert "NOT COMPLETE" in written(name, sample_summary(complete=False), HostileRun(()))


def test_a_spreadsheet_shows_each_hostile_key_as_text(hostile: tuple[Summary, HostileRun]) -> None:
    table = pandas.read_csv(io.StringIO(written("csv", *hostile), newline=""), dtype=str, keep_default_na=False)
    assert list(table.columns) == list(COLUMNS)
    keys = list(table[table["kind"] == "finding"]["key"])
    assert keys == [as_text(key) for key in HOSTILE]
    for column in table.columns:
        for cell in table[column]:
            assert not cell.lstrip().startswith(("=", "+", "-", "@", "|", "%", "＝", "＋", "－", "＠"))


def test_markdown_calls_nothing_clean_that_was_not_looked_at() -> None:
    clean = "**No object is open to strangers or to other accounts.**"
    seen, unseen = [judged("k")], [denied("k")]
    assert clean in written("markdown", sample_summary(tally_of(*seen)), HostileRun(seen))
    assert clean not in written("markdown", sample_summary(tally_of(*unseen)), HostileRun(unseen))


def test_markdown_fits_a_comment_and_error_codes_stay_bounded() -> None:
    judgements = [refused(f"{'&' * 900}{number}", f"code {number}") for number in range(SUBJECTS + 100)]
    summary = sample_summary(tally_of(*judgements))
    text = written("markdown", summary, HostileRun(judgements))
    assert len(text) <= LONGEST
    assert "would not fit" in text
    unread = [one for one in events(summary, HostileRun(judgements)) if one["severity"] == "Unknown"][1:]
    assert len(unread) == SUBJECTS
    assert sum(one["count"] for one in unread) == summary.coverage.undecided


def test_tables_have_dormant_objects_where_there_are_some() -> None:
    some, none = tally_of(judged("a", verdict=Verdict.DORMANT), judged("b")), tally_of(judged("b"))
    text = written("markdown", sample_summary(some), HostileRun(()))
    assert "| dormant | 1 |" in text
    assert "| private | 1 |" in text
    assert "dormant" not in written("markdown", sample_summary(none), HostileRun(()))
    assert json.loads(written("json", sample_summary(none), HostileRun(())))["verdicts"]["dormant"] == 0


NUMBERS = [
    "1e5", "1E-5", "007", "1,000", ".5", "5.", "50%", "$5", "1_000", "1'000", "-5", "+5", "٣", "2026-01-02",
    "2026/01", "1/2", "3-4", "12:30",
]  # fmt: skip
NUMBERS += ["31.12.2026", "2026-01-02T03:04:05Z", "mar-1", "SEPT2", "1-mar-26", "TRUE", "false"]
NUMBERS += [" 5", "5 ", "12:30 PM", "1 1/2", "1 May", "march 2026"]


def test_a_text_like_a_number_or_a_date_stays_a_text() -> None:
    """LibreOffice 7.4 makes numbers and dates of some of them, and other spreadsheets of others."""
    for text in NUMBERS:
        (cell,) = pandas.read_csv(io.StringIO(csv_row([as_text(text)])), header=None)[0]
        assert (as_text(text), cell) == (f"'{text}", f"'{text}")
    for text in ["a1", "1e5.txt", "March", "market2", "3d", "x/2026-01-02", "v1.2", "photos/1", "null"]:
        assert as_text(text) == text
