"""A page that is made of roll-ups and of the changes since the last run."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest
from msgspec.structs import replace

from auditor.model.access import Verdict
from auditor.model.finding import Severity
from auditor.model.rollup import FirstStep, Group, GroupKind, RollUps, Sample, Totals, TrendNight
from auditor.model.summary import Changes, UnreadCount
from auditor.reports.page.data import PageData
from auditor.reports.page.render import render
from auditor.reports.rollup import OTHERS
from tests.reports.page.test_audit_page import Page
from tests.support.samples.pages import group_of
from tests.support.samples.reports import (
    RUN,
    PageSource,
    content_of,
    denied,
    finding,
    judged,
    sample_file,
    sample_summary,
    tally_of,
    target,
)


def group(**changes: Any) -> Group:
    """A group of three exposed objects below exports/, of which one is new."""
    found: dict[str, Any] = {
        "id": "0a1b2c3d4e5f",
        "kind": GroupKind.VERDICT,
        "verdict": Verdict.EXPOSED,
        "audience": "anyone",
    }
    found |= {"prefix": "exports/", "count": 3, "bytes": 3_000, "new": 1, "since": "2026-01-02T03:04:05Z"}
    return group_of(**found | {"samples": (Sample("exports/a"), Sample("exports/b", "v1"))} | changes)


def rollups(*groups: Group, first: tuple[FirstStep, ...] = ()) -> RollUps:
    totals = Totals(verdicts={}, findings={}, rules={}, undecided=0, new=None, excepted=0)
    return RollUps(run=RUN, target=target(), complete=True, totals=totals, groups=groups, first=first)


def page(found: RollUps, changes: Changes | None = None) -> PageData:
    return content_of(page_source(found, changes=changes or Changes()))


def page_source(found: RollUps, **changes: Any) -> PageSource:
    objects = [judged(f"exports/{at}", finding(f"exports/{at}"), verdict=Verdict.EXPOSED) for at in range(3)]
    made = sample_summary(tally_of(*objects, denied("vault/1"), judged("p")))
    made = replace(made, unread=(UnreadCount("GetObjectAcl", "AccessDenied", 1),), **changes)
    return PageSource(summary=made, bucket=sample_file(), rollups=found)


def words(found: PageData) -> str:
    return " ".join(Page(render("audit.html", found)).text.split())


def test_curve_ends_with_the_last_night_that_has_a_run() -> None:
    before = TrendNight("2026-01-01", "r", {"exposed": 9}, {}, 4, 12, {"exposed": 6})
    today = TrendNight("2026-01-02", "s", {"exposed": 3}, {}, 1, 6, {})
    stopped = page(replace(rollups(group()), nights=(before, today, TrendNight("2026-01-03")))).curve
    assert stopped is not None
    assert (stopped.end.text, stopped.words) == ("3 on 2 Jan", "3 on 1 Jan. No complete run on 1 day: 3 Jan.")
    assert page(replace(rollups(group()), nights=(today,))).curve is None


def of_rule(rule: str, severity: Severity = Severity.HIGH, **changes: Any) -> Group:
    return group(kind=GroupKind.FINDING, rule=rule, verdict=None, severity=severity, **changes)


def small(prefix: str, *names: str, **changes: Any) -> Group:
    """A group whose keys are all known."""
    samples = tuple(Sample(f"{prefix}{name}") for name in names)
    made = {"id": f"{prefix}{len(names)}", "prefix": prefix, "count": len(names), "samples": samples, **changes}
    return of_rule(**made) if "rule" in changes else group(**made)


def test_small_groups_of_a_rule_share_a_row_that_shows_all_their_keys() -> None:
    folders = "abcd"
    many = [small(f"{one}/", "1", "2", rule="O02") for one in folders]
    large = small("big/", "1", rule="O02", count=2_000)
    found = page(rollups(large, *many))
    assert [(one.group.count, one.prefixes) for one in found.findings] == [(2_000, 1), (8, 4)]
    said = words(found)
    assert "internet read 8 objects in 4 prefixes 4 newa/1a/2b/1b/2c/1c/2d/1d/2" in said
    assert "internet read 2,000 objects below big/ 1 newbig/1 + 1,999" in said
    assert [tick.number for tick in found.ticks] == [2_008, 5]


def test_objects_are_mended_by_the_rules_that_found_how_they_are_open() -> None:
    by_acl, by_policy = small("a/", "1"), small("b/", "1", audience="any-account")
    public = of_rule("B04", prefix=None, count=1, samples=(Sample(None),), id="b" * 12)
    found = page(rollups(by_acl, by_policy, small("a/", "1", rule="O02"), public))
    assert [[rules for rules, _ in one.remedies] for one in found.openings] == [["O02"], ["B04"]]
    assert "O02 Set Object Ownership to BucketOwnerEnforced" in words(found)
    without = page(rollups(by_policy))
    assert [[rules for rules, _ in one.remedies] for one in without.openings] == [[""]]


@pytest.mark.parametrize("text", ["a b", "$(touch x)", "';touch x;'", "a\nb\x1b", "\u202egpj"])
def test_commands_have_whole_words_for_the_shell(text: str) -> None:
    made = small(f"{text}/", "1", "2", count=9, id=text)
    step = FirstStep(change="turn it on", closes=1, of=1, how=f"--acls-off {text}")
    source = page_source(rollups(made, first=(step,)), out=f"/runs/{text}")
    found = content_of(source)
    commands = [command for _, command in found.first] + [text for _, text in found.openings[0].commands]
    assert len(commands) == 4
    for command in commands:
        assert command.isprintable()
        shown = subprocess.run(
            ["/bin/bash", "-c", f"jq() {{ :; }}; auditor() {{ printf '%s\\0' \"$@\" >&2; }}; {command}"],
            capture_output=True,
            check=True,
        )
        assert shown.stdout == b""
        assert f"/runs/{text}" in shown.stderr.decode().split("\0")


def test_map_needs_four_prefixes_and_its_boxes_lead_to_rows() -> None:
    three = [small(f"{one}/", "1") for one in "abc"]
    assert page(rollups(*three)).places is None
    found = page(rollups(*three, small("", "1", rest=True), small("a/", "2", audience="any-account")))
    assert found.places is not None
    (one,) = found.places.maps
    assert {(box.count.prefix, box.count.number) for box in one.boxes} == {("a/", 2), ("b/", 1), ("c/", 1), ("", 1)}
    assert {box.count.group for box in one.boxes} == {found.openings[0].group.id}
    assert "(no prefix)" in words(found)
    assert "a/: 2 exposed, 2 of them new" in words(found)


def test_run_without_one_to_compare_with_says_why_and_calls_nothing_new() -> None:
    said = words(page(rollups(group()), Changes(why_not="no complete run of this target came before")))
    assert "Since the last run No complete run of this target came before." in said
    assert "0 new" not in said
    assert "Nothing has changed." in words(page(rollups(), Changes(against=RUN)))


def test_table_of_prefixes_is_cut_and_adds_up() -> None:
    found = page(rollups(*(group(id=f"{at:03}", prefix=f"{at:03}/", count=400 - at) for at in range(90)))).places
    assert found is not None
    assert (len(found.rows), found.more, sum(found.totals)) == (60, 30, sum(400 - at for at in range(90)))


def test_page_offers_no_acceptance_that_would_be_refused() -> None:
    dormant, unknown = group(verdict=Verdict.DORMANT), group(verdict=Verdict.UNKNOWN)
    for one in (dormant, unknown, group(rest=True), group(audience=OTHERS)):
        (row,) = page(rollups(one)).openings
        assert "Accept it" not in dict(row.commands)
    (row,) = page(rollups(group())).openings
    assert dict(row.commands)["Accept it"].startswith("auditor accept 0a1b2c3d4e5f --run ")
