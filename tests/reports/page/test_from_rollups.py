"""A page that is made of roll-ups and of the changes since the last run."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from auditor.model.access import Verdict
from auditor.model.finding import Severity
from auditor.model.rollup import FirstStep, Group, GroupKind, RollUps, Sample, Totals, TrendNight
from auditor.model.summary import Cause, Changes, UnreadCount
from auditor.reports.highlights import Highlights
from auditor.reports.page.build import PageSource, page_data
from auditor.reports.page.data import PageData
from auditor.reports.page.render import print_page
from tests.reports.page.test_audit_page import Page
from tests.support.samples.reports import RUN, denied, finding, judged, sample_file, sample_summary, tally_of, target


def group(**changes: Any) -> Group:
    values: dict[str, Any] = {
        "id": "0a1b2c3d4e5f",
        "kind": GroupKind.VERDICT,
        "rule": None,
        "verdict": Verdict.EXPOSED,
        "severity": None,
        "audience": "anyone",
        "prefix": "exports/",
        "rest": False,
        "count": 3,
        "bytes": 3_000,
        "new": 1,
        "excepted": 0,
        "since": "2026-01-02T03:04:05Z",
        "samples": (Sample("exports/a"), Sample("exports/b", "v1")),
    }
    return Group(**(values | changes))


def rollups(*groups: Group, first: tuple[FirstStep, ...] = ()) -> RollUps:
    totals = Totals(verdicts={}, findings={}, rules={}, undecided=0, new=None, excepted=0)
    return RollUps(run=RUN, target=target(), complete=True, totals=totals, groups=groups, first=first)


def page(found: RollUps, changes: Changes | None = None) -> PageData:
    objects = [judged(f"exports/{at}", finding(f"exports/{at}"), verdict=Verdict.EXPOSED) for at in range(3)]
    made = sample_summary(tally_of(*objects, denied("vault/1"), judged("p")))
    made = replace(made, unread=(UnreadCount("GetObjectAcl", "AccessDenied", 1),), changes=changes or Changes())
    return page_data(PageSource(summary=made, shown=Highlights(), bucket=sample_file(), rollups=found))


def words(found: PageData) -> str:
    return " ".join(Page(print_page(found)).text.split())


def test_cards_and_curve_have_the_trend() -> None:
    objects = {"exposed": 9, "shared": 2, "unknown": 0, "masked": 0, "dormant": 0, "private": 1}
    before = TrendNight("2026-01-01", "r", objects, {"critical": 1, "high": 2}, 4, 12, {"exposed": 6})
    today = TrendNight("2026-01-03", "s", objects | {"exposed": 3}, {"high": 1}, 1, 6, {})
    found = page(replace(rollups(group()), nights=(TrendNight("broken"), before, TrendNight("2026-01-02"), today)))
    assert found.curve is not None
    assert found.curve.words == "3 on 1 Jan. No complete run on 1 day: 2 Jan."
    sparks = {card.sign.label: card.spark for card in found.cards}
    assert all(sparks[name] is not None for name in ("exposed", "shared", "undecided", "critical and high"))
    assert len(found.curve.gaps) == 1


def test_groups_say_who_gets_in_and_where() -> None:
    of_rule = {"kind": GroupKind.FINDING, "rule": "O02", "verdict": None, "severity": Severity.HIGH, "id": "f" * 12}
    found = page(rollups(group(), group(**of_rule)))
    assert [one.id for one in found.openings] == ["0a1b2c3d4e5f"]
    assert [one.id for one in found.findings] == ["f" * 12]
    said = words(found)
    assert "Anyone on the internet can reach 3 objects below exports/ 1 new" in said
    assert "Anyone on the internet can read 3 objects below exports/" in said
    assert "exports/b version v1" in said
    assert "Since2 January 2026" in said
    assert found.places is not None
    assert found.places.maps[0].boxes[0].group == "0a1b2c3d4e5f"


def test_widest_verdict_comes_first_and_the_map_counts_exceptions_apart() -> None:
    shared = group(id="1" * 12, verdict=Verdict.SHARED, audience="account 444455556666", prefix="b/", count=9)
    found = page(rollups(shared, group(count=5, excepted=2)))
    assert [one.verdict for one in found.openings] == ["exposed", "shared"]
    assert found.places is not None
    assert [sign.label for sign in found.places.columns] == ["exposed", "shared", "public by intent"]
    assert found.places.totals == (3, 9, 2)


def test_first_changes_count_what_each_closes_beyond_the_others() -> None:
    steps = (
        FirstStep(change="turn on IgnorePublicAcls", closes=993, of=1_204, how="--block-public-access"),
        FirstStep(change="remove the statement PublicSite", closes=1_204, of=1_204, breaks=("account 1",)),
    )
    found = page(rollups(group(), first=steps))
    assert [(step.number, step.aside) for step in found.first] == [(993, ""), (211, "account 1 would lose access")]
    assert "auditor what-if RUN --block-public-access" in words(found)


@pytest.mark.parametrize(
    ("decides", "text"), [(1, "undecided object could be decided"), (2, "undecided objects could be decided")]
)
def test_first_change_counts_the_objects_that_it_decides(decides: int, text: str) -> None:
    found = page(rollups(group(), first=(FirstStep(change="let the auditor read", closes=0, of=9, decides=decides),)))
    assert [(step.number, step.words) for step in found.first] == [(decides, text)]


def test_hole_names_the_prefix_of_its_objects() -> None:
    hole = group(kind=GroupKind.UNDECIDED, verdict=None, audience="GetObjectAcl AccessDenied", prefix="vault/", count=1)
    assert [row.place for row in page(rollups(hole)).holes] == ["vault/"]


def test_changes_are_counted_by_kind_and_said_once_by_cause() -> None:
    changes = Changes(
        against="20260101T030405Z-0a1b2c",
        classes={"new": 4, "resolved": 2},
        verdicts={"exposed": {"new": 1, "worsened": 1, "resolved": 2}},
        findings={"high": {"new": 3}},
        causes=(Cause("the bucket policy changed", 2),),
    )
    found = page(rollups(group()), changes)
    said = words(found)
    assert found.since == "Since the run of 1 January 2026, 03:04 UTC"
    assert [(card.sign, card.number) for card in found.changes] == [("+", 1), ("+", 1), ("−", 2)]
    assert "the bucket policy changed: moved 2 objects" in said
    assert "Strangers can get at 3 objects. 2 of them are new." in said
    assert "3 findings: 3 high." in said


def test_run_without_one_to_compare_with_says_why_and_calls_nothing_new() -> None:
    said = words(page(rollups(group()), Changes(why_not="no complete run of this target came before")))
    assert "Since the last run No complete run of this target came before." in said
    assert "0 new" not in said
    assert "Nothing has changed." in words(page(rollups(), Changes(against=RUN)))
