"""The changes between two runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from auditor.model.access import Verdict
from auditor.model.finding import Severity
from auditor.model.object import Outcome, Skipped
from auditor.model.run_lines import FindingLine, ObjectLine
from auditor.reports.diff import diff

NONE = Skipped("not asked")


@dataclass
class Lines:
    """The lines of a run; reversed keys are not sorted for it."""

    listed: list[ObjectLine]
    found: list[FindingLine]

    def objects(self) -> Iterable[ObjectLine]:
        return iter(self.listed)

    def findings(self) -> Iterable[FindingLine]:
        return iter(self.found)


def line(key: str, verdict: Verdict | None = Verdict.PRIVATE, **changes: Any) -> ObjectLine:
    made = ObjectLine(
        key=key,
        version_id=None,
        etag="e",
        size=1,
        last_modified="2026-01-02T03:04:05Z",
        storage_class="STANDARD",
        owner="me",
        acl=NONE,
        head=NONE,
        outcome=Outcome.AUDITED,
        changed=False,
        verdict=verdict,
        rules=(),
        hashed=None,
    )
    return replace(made, **changes)


def finding(key: str | None, rule: str = "O02", version_id: str | None = None) -> FindingLine:
    return FindingLine(f"{key}{rule}{version_id}", rule, Severity.HIGH, key, version_id, None, None, "it is so")


def changes(old: Lines, new: Lines) -> list[tuple[str, str | None]]:
    return [(str(one.kind), one.key) for one in diff(old, new)]


def test_equal_runs_have_no_changes() -> None:
    run = Lines([line("a"), line("b")], [finding(None), finding("a")])
    assert changes(run, run) == []


def test_finding_that_is_new_or_resolved() -> None:
    old = Lines([line("a"), line("b")], [finding(None, "B01"), finding("a")])
    new = Lines([line("a"), line("b")], [finding("b")])
    assert changes(old, new) == [("resolved", None), ("resolved", "a"), ("new", "b")]


def test_object_that_could_not_be_read_again_or_is_gone_resolves_nothing() -> None:
    old = Lines([line("a"), line("b"), line("c")], [finding("a"), finding("b"), finding("c")])
    undecided = line("a", Verdict.PRIVATE, outcome=Outcome.UNDECIDED)
    new = Lines([undecided, line("c", None, outcome=Outcome.VANISHED)], [])
    assert changes(old, new) == [("unread", "a"), ("gone", "b"), ("gone", "c")]


def test_verdict_that_worsened_or_improved() -> None:
    old = Lines([line("a"), line("b", Verdict.EXPOSED), line("c", None)], [])
    new = Lines([line("a", Verdict.SHARED), line("b", Verdict.UNKNOWN), line("c")], [])
    found = list(diff(old, new))
    assert [(one.kind, one.before, one.after) for one in found] == [
        ("worsened", "private", "shared"),
        ("improved", "exposed", "unknown"),
    ]


def test_versions_of_a_key_are_compared_each_with_itself() -> None:
    first = [line("a", Verdict.EXPOSED, version_id="2"), line("a", version_id="1")]
    second = [line("a", version_id="3"), *first]
    old = Lines(first, [finding("a", version_id="2")])
    assert changes(old, Lines(second, [finding("a", version_id="2")])) == []
    assert changes(old, Lines(second[:1] + second[2:], [])) == [("gone", "a")]


def test_keys_are_merged_in_the_order_of_their_bytes() -> None:
    keys = ["Z", "a", "\uffff", "\U0001f4a9"]
    old, new = Lines([line(key) for key in keys], []), Lines([], [finding(key) for key in keys])
    assert [key for _, key in changes(old, new)] == keys


def test_only_one_key_is_held_at_a_time() -> None:
    alive = 0

    def endless() -> Iterable[ObjectLine]:
        nonlocal alive
        for number in range(10_000):
            alive += 1
            yield line(f"{number:05}", Verdict.EXPOSED)

    class Endless(Lines):
        def objects(self) -> Iterable[ObjectLine]:
            return endless()

    first = next(iter(diff(Lines([line("00000")], []), Endless([], []))))
    assert (first.key, alive < 5) == ("00000", True)
