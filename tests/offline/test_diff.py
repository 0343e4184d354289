"""The changes between two runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pytest
from msgspec.structs import replace

from auditor.errors import UsageError
from auditor.model.access import Verdict
from auditor.model.finding import Severity
from auditor.model.object import Outcome, Skipped
from auditor.model.run_lines import FindingLine, ObjectLine, PastObject, Seen
from auditor.model.summary import Summary
from auditor.offline.diff import diff
from auditor.runs.run_files import RunPlan
from tests.support.samples.reports import RUN, sample_file, target

NONE = Skipped("not asked")


FILE = sample_file()


@dataclass
class Lines:
    """The lines of a run; reversed keys are not sorted for it."""

    listed: list[ObjectLine]
    found: list[FindingLine]

    run_id: str = RUN
    summary: Summary | None = None
    plan: RunPlan | None = FILE
    last_key: str | None = "\U0010ffff"

    def objects(self) -> Iterable[ObjectLine]:
        return iter(self.listed)

    def bucket_findings(self) -> Iterable[FindingLine]:
        return [line for line in self.found if line.key is None]

    def results(self) -> Iterable[PastObject]:
        for line in self.objects():
            found = tuple(one for one in self.found if (one.key, one.version_id) == (line.key, line.version_id))
            rules = tuple(one.rule for one in found)
            yield PastObject(line.key, line.version_id, Seen(line.outcome, line.verdict, rules), found)


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
        latest=True,
        audience=(),
        reasons=(),
        since=None,
        exception=None,
    )
    return replace(made, **changes)


def finding(key: str | None, rule: str = "O02", version_id: str | None = None) -> FindingLine:
    return FindingLine(
        f"{key}{rule}{version_id}", rule, Severity.HIGH, key, version_id, None, None, "it is so", None, None, None
    )


def changes(old: Lines, new: Lines) -> list[tuple[str, str | None]]:
    return [(str(one.kind), one.key) for one in diff(old, new)]


def test_finding_that_is_new_or_resolved() -> None:
    old = Lines([line("a"), line("b")], [finding(None, "B01"), finding("a")])
    new = Lines([line("a"), line("b")], [finding("b")])
    assert changes(old, new) == [("resolved", None), ("resolved", "a"), ("new", "b")]


def test_object_that_could_not_be_read_again_or_is_gone_resolves_nothing() -> None:
    old = Lines([line("a"), line("b"), line("c")], [finding("a"), finding("b"), finding("c")])
    undecided = line("a", Verdict.PRIVATE, outcome=Outcome.UNDECIDED)
    new = Lines([undecided, line("c", None, outcome=Outcome.VANISHED)], [])
    assert changes(old, new) == [("unread", "a"), ("gone", "b"), ("gone", "c")]


def test_object_that_a_stopped_run_did_not_reach_is_neither_gone_nor_new() -> None:
    whole = Lines([line("a"), line("b", Verdict.EXPOSED)], [finding("b")])
    stopped = Lines([line("a")], [], last_key="a")
    assert changes(whole, stopped) == [("unread", "b"), ("unread", "b")]
    assert changes(stopped, whole) == [("decided", "b"), ("decided", "b")]


def test_runs_of_different_targets_are_refused() -> None:
    other = replace(FILE, target=target(prefix="p/"))
    with pytest.raises(UsageError, match="different targets"):
        changes(Lines([], []), Lines([], [], plan=other))


def test_versions_of_a_key_are_compared_each_with_itself() -> None:
    first = [line("a", Verdict.EXPOSED, version_id="2"), line("a", version_id="1")]
    second = [line("a", version_id="3"), *first]
    old = Lines(first, [finding("a", version_id="2")])
    assert changes(old, Lines(second, [finding("a", version_id="2")])) == []
    assert changes(old, Lines(second[:1] + second[2:], [])) == [("gone", "a"), ("gone", "a")]


def test_versions_of_a_key_are_read_together_wherever_reading_pauses() -> None:
    many = [line(f"a/{number:05}") for number in range(4_998)]
    versions = [line("b", Verdict.EXPOSED, version_id=name) for name in "4321"]  # the second is the 5,000th object
    lost = [line(f"c/{number:05}", Verdict.EXPOSED) for number in range(6_000)]
    found = changes(Lines([*many, *versions, *lost], []), Lines([*many, *versions, line("d")], []))
    assert found == [("gone", one.key) for one in lost]


def test_keys_are_merged_in_the_order_of_their_bytes() -> None:
    keys = ["Z", "a", "\uffff", "\U0001f4a9"]
    old, new = (
        Lines([line(key) for key in keys], []),
        Lines([line(key) for key in keys], [finding(key) for key in keys]),
    )
    assert [key for _, key in changes(old, new)] == keys


def test_finding_on_a_hidden_grant_is_never_new_or_resolved() -> None:
    dormant = Lines([line("a", Verdict.DORMANT)], [finding("a", "O13")])
    assert changes(dormant, Lines([line("a")], [])) == [("unread", "a"), ("unread", "a")]
    assert changes(Lines([line("a")], []), dormant) == [("decided", "a"), ("decided", "a")]


KINDS: list[tuple[Verdict, Verdict, str | None]] = [
    (Verdict.PRIVATE, Verdict.DORMANT, "decided"),  # the old run may have had no Inventory to see the grant by
    (Verdict.DORMANT, Verdict.PRIVATE, "unread"),  # the new run may have none
    (Verdict.DORMANT, Verdict.DORMANT, None),
    (Verdict.DORMANT, Verdict.UNKNOWN, "worsened"),
    (Verdict.DORMANT, Verdict.EXPOSED, "worsened"),  # ACLs count again
    (Verdict.EXPOSED, Verdict.DORMANT, "improved"),
    (Verdict.MASKED, Verdict.DORMANT, "improved"),
    (Verdict.DORMANT, Verdict.MASKED, "worsened"),
]


def test_only_an_inventory_tells_dormant_from_private() -> None:
    for before, after, kind in KINDS:
        found = changes(Lines([line("a", before)], []), Lines([line("a", after)], []))
        assert found == ([] if kind is None else [(kind, "a")]), (before, after)
    dormant = Lines([line("a", Verdict.DORMANT)], [])
    assert changes(Lines([], []), dormant) == [("decided", "a")]
    assert changes(dormant, Lines([], [])) == [("gone", "a")]
    undecided = Lines([line("a", Verdict.UNKNOWN, outcome=Outcome.UNDECIDED)], [])
    assert ("resolved", "a") not in changes(dormant, undecided)
    assert ("new", "a") not in changes(undecided, dormant)


def test_run_that_does_not_say_which_rules_it_judged_resolves_nothing() -> None:
    old = Lines([line("a")], [finding("a")])
    assert changes(old, Lines([line("a")], [], plan=None)) == [("unread", "a")]
