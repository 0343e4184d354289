"""How long to wait before another try: longer each time, and not all who wait for the same."""

from __future__ import annotations

import random
from typing import Final

_DOUBLINGS: Final = 30


def backoff(failures: int, first: float, longest: float) -> float:
    """Seconds, at random from half to all of `first` doubled so many times, or of `longest` where that is less."""
    whole = min(longest, first * 2.0 ** min(failures, _DOUBLINGS))
    return whole * random.uniform(0.5, 1.0)  # noqa: S311 - spreads retries, guards nothing
