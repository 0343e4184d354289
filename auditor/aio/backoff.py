"""Compute the pause before a retry: doubled with each failure, and random, so that clients do not retry together."""

from __future__ import annotations

import random
from typing import Final

_DOUBLINGS: Final = 30


def backoff(
    failures: int, first: float, longest: float, *, least: float = 0.5, dice: random.Random | None = None
) -> float:
    """Return the seconds to wait before a retry: a random share of a pause that doubles with each failure.

    The pause is `first`, doubled `failures` times, but at most `longest`. least: the smallest share; the largest is 1.
    least=0 is the "full jitter" of AWS's "Exponential Backoff And Jitter". dice: the random generator that gives the
    share; None for the module's own.
    """
    uniform = random.uniform if dice is None else dice.uniform
    return min(longest, first * 2.0 ** min(failures, _DOUBLINGS)) * uniform(least, 1.0)
