"""The pause before another attempt. It doubles with each failure; randomness keeps clients from retrying at once."""

from __future__ import annotations

import random
from typing import Final

_DOUBLINGS: Final = 30


def backoff(
    failures: int, first: float, longest: float, *, least: float = 0.5, dice: random.Random | None = None
) -> float:
    """Return the seconds to wait: `first` doubled `failures` times, at most `longest`, times a random share.

    The share is from `least` to 1. With least=0 this is "full jitter" (AWS Architecture Blog, "Exponential Backoff And
    Jitter").
    """
    uniform = random.uniform if dice is None else dice.uniform
    return min(longest, first * 2.0 ** min(failures, _DOUBLINGS)) * uniform(least, 1.0)
