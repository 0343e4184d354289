"""The sample of a probe: of each group, in bounded memory, the same each time, the worst groups first."""

from __future__ import annotations

import pytest

from auditor.audit.probe.sample import PRIVATE_GROUPS, Sampler, sampled
from auditor.model.access import Verdict
from auditor.model.object import Outcome, Skipped
from auditor.model.rollup import Group, GroupKind
from auditor.model.run_lines import ObjectLine

RUN = "20260102T030405Z-abcdef"
_FACT = Skipped("not needed here")


def line(key: str, verdict: Verdict | None = Verdict.PRIVATE, *audience: str) -> ObjectLine:
    outcome = Outcome.VANISHED if verdict is None else Outcome.AUDITED
    return ObjectLine(
        key, None, "e", 1, "2026-01-02T03:04:05Z", "STANDARD", None, _FACT, _FACT, outcome, False, verdict, (), None,
        True, audience, (), None, None,
    )  # fmt: skip


def group(verdict: Verdict, audience: str | None, prefix: str) -> Group:
    return Group(
        id="0" * 12, kind=GroupKind.VERDICT, rule=None, verdict=verdict, severity=None, audience=audience,
        prefix=prefix, rest=False, count=1, bytes=1, new=None, excepted=0, since=None,
    )  # fmt: skip


def chosen(sampler: Sampler, lines: list[ObjectLine], most: int = 1000) -> list[str]:
    assert sampled(sampler, lines, lambda: False)
    return [one.key for one in sampler.chosen(most)]


def test_each_group_gives_its_sample_and_the_worst_comes_first() -> None:
    groups = [
        group(Verdict.EXPOSED, "anyone", "a/deep/"),
        group(Verdict.EXPOSED, "anyone", ""),
        group(Verdict.SHARED, "account 444455556666", "b/"),
    ]
    lines = [line(f"a/deep/er/{number}", Verdict.EXPOSED, "anyone") for number in range(50)]
    lines += [line(f"a/{number}", Verdict.EXPOSED, "anyone") for number in range(50)]
    lines += [line("b/1", Verdict.SHARED, "account 444455556666"), line("gone", None)]
    lines += [line(f"c/{number}") for number in range(50)]
    found = chosen(Sampler(RUN, groups, 2), lines)
    assert [key.rpartition("/")[0] for key in found] == ["a/deep/er", "a", "b", "c", "a/deep/er", "a", "c"]
    assert chosen(Sampler(RUN, groups, 2), lines) == found
    assert chosen(Sampler(RUN, groups, 2), lines, most=3) == found[:3]


def test_private_objects_have_few_groups() -> None:
    lines = [line(f"{number}/a") for number in range(PRIVATE_GROUPS * 3)]
    sampler = Sampler(RUN, [], 1)
    assert len(chosen(sampler, lines)) == sampler.groups == PRIVATE_GROUPS + 1


@pytest.mark.parametrize(("sample", "wanted"), [(0, []), (999_999_999, ["a", "b"])])
def test_a_sample_of_none_and_one_larger_than_the_run(sample: int, wanted: list[str]) -> None:
    assert sorted(chosen(Sampler(RUN, [], sample), [line("a"), line("b")], most=999_999_999)) == wanted


def test_every_object_has_the_same_chance() -> None:
    counts = dict.fromkeys((str(number) for number in range(10)), 0)
    for run in range(400):
        for key in chosen(Sampler(f"{RUN}{run}", [], 3), [line(key) for key in counts]):
            counts[key] += 1
    assert sum(counts.values()) == 1200
    assert all(80 <= number <= 160 for number in counts.values())


def test_a_stop_ends_the_pass() -> None:
    assert not sampled(Sampler(RUN, [], 1), [line("a")], lambda: True)
