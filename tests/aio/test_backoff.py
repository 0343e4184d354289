"""Pauses grow up to a limit, and are random."""

from __future__ import annotations

import pytest

from auditor.aio.backoff import backoff


@pytest.mark.parametrize(
    ("failures", "least", "most"), [(0, 0.05, 0.1), (1, 0.1, 0.2), (3, 0.4, 0.8), (9, 10.0, 20.0), (10**6, 10.0, 20.0)]
)
def test_pause_is_between_half_and_all_of_what_doubling_gives(failures: int, least: float, most: float) -> None:
    pauses = [backoff(failures, 0.1, 20.0) for _ in range(200)]
    assert least <= min(pauses) < max(pauses) <= most
    assert max(pauses) - min(pauses) > (most - least) / 2
