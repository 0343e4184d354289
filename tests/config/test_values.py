"""Times and percentages as people write them."""

from __future__ import annotations

from typing import Any

import pytest

from auditor.config.values import keep, long_span, percent, span
from auditor.errors import UsageError
from auditor.model.reuse import ReusePolicy


def test_times() -> None:
    for text, seconds in (
        ("90d", 7_776_000),
        ("36h", 129_600),
        ("15m", 900),
        ("0s", 0),
        ("1.5h", 5400),
        ("2w", 1_209_600),
    ):
        assert span(text, "--grace") == seconds
    bad: tuple[Any, ...] = ("", "90", "d", "-1d", "1e3d", "1d ", "nan", "٣d", 90, True, None, ["1d"])
    for value in bad:
        with pytest.raises(UsageError, match=r"--grace is .*: give a time like 90d"):
            span(value, "--grace")
    assert long_span("1m", "--max-age") == 60
    with pytest.raises(UsageError, match="a minute or more"):
        long_span("59s", "--max-age")


def test_percentages() -> None:
    good: tuple[tuple[Any, float], ...] = (("2.5", 2.5), ("10%", 10), (100, 100), (0.5, 0.5))
    for value, share in good:
        assert percent(value, "--percent") == share
    bad: tuple[Any, ...] = ("0", "100.1", "-5", "", "%", "ten", True, None, float("nan"))
    for wrong in bad:
        with pytest.raises(UsageError, match="above 0 and up to 100"):
            percent(wrong, "--percent")


def test_ages_of_kept_facts() -> None:
    good: tuple[tuple[Any, dict[str, float]], ...] = (
        ("acl=1d", {"acl": 86_400}),
        ("acl=1d, head=7d,lock=36h", {"acl": 86_400, "head": 604_800, "lock": 129_600}),
        ({"acl": "1d", "content": "30d"}, {"acl": 86_400, "content": 2_592_000}),
    )
    for value, limits in good:
        assert keep(value, "--keep") == ReusePolicy(limits)
    bad: tuple[Any, ...] = ("", "acl", "acl=", "=1d", "acls=1d", "acl=1d,acl=2d", "acl=0s", {}, {"acl": 5}, 7, True)
    for wrong in bad:
        with pytest.raises(UsageError, match=r"--keep(: acl)? is .*: give (ages like acl=3d,head=8d|a time|a minute)"):
            keep(wrong, "--keep")


def test_head_is_as_old_as_its_most_urgent_member_may_be() -> None:
    cases: tuple[tuple[dict[str, float], tuple[str, ...], float | None], ...] = (
        ({"head": 7}, ("encryption", "content"), 7),
        ({"head": 7, "encryption": 3, "lock": 1}, ("encryption", "tags"), 3),
        ({"encryption": 3}, ("encryption", "lock"), None),
        ({"acl": 1}, ("encryption",), None),
        ({"acl": 1}, ("content",), float("inf")),
        ({"head": 7, "content": 2}, ("content", "encryption"), 2),
    )
    for limits, groups, age in cases:
        assert ReusePolicy(limits).head(groups) == age
