"""Times and percentages as people write them."""

from __future__ import annotations

from typing import Any

import pytest

from auditor.config.values import long_span, percent, span
from auditor.errors import UsageError


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90d", 7_776_000), ("36h", 129_600), ("15m", 900), ("0s", 0), ("1.5h", 5400), ("2w", 1_209_600)],
)
def test_times(text: str, seconds: float) -> None:
    assert span(text, "--grace") == seconds


@pytest.mark.parametrize("value", ["", "90", "d", "-1d", "1e3d", "1d ", "nan", "٣d", 90, True, None, ["1d"]])
def test_what_is_no_time_is_named(value: Any) -> None:
    with pytest.raises(UsageError, match=r"--grace is .*: give a time like 90d"):
        span(value, "--grace")


def test_limit_below_a_minute_is_a_slip() -> None:
    assert long_span("1m", "--max-age") == 60
    with pytest.raises(UsageError, match="a minute or more"):
        long_span("59s", "--max-age")


@pytest.mark.parametrize(("value", "share"), [("2.5", 2.5), ("10%", 10), (100, 100), (0.5, 0.5)])
def test_percentages(value: Any, share: float) -> None:
    assert percent(value, "--percent") == share


@pytest.mark.parametrize("value", ["0", "100.1", "-5", "", "%", "ten", True, None, float("nan")])
def test_what_is_no_percentage_is_named(value: Any) -> None:
    with pytest.raises(UsageError, match="above 0 and up to 100"):
        percent(value, "--percent")
