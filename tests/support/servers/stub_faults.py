"""The faults of a request, and the plans that choose the requests.

A plan is called for every request, with the operation, the key ("" for a call of the bucket) and the number of this
call (from 1), and returns a Fault or None. A Fault is a plan too, for every request.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Kind(StrEnum):
    """The ways to fail.

    CUT: half of the body, then the connection closes. STALL: half of the body, then nothing more. VANISH: the object is
    removed just before it is read. EMPTY: 200 without a body. INCOMPLETE: 200, well formed, without the required
    elements. TRUNCATED: 200, half of the body, with a Content-Length to match.
    """

    ERROR = "error"
    RESET = "reset"
    CUT = "cut"
    STALL = "stall"
    DELAY = "delay"
    BLACK_HOLE = "black hole"
    VANISH = "vanish"
    EMPTY = "empty"
    INCOMPLETE = "incomplete"
    TRUNCATED = "truncated"


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault. status, code: of an ERROR; without a code the answer has no body. seconds: of a DELAY."""

    kind: Kind
    status: int = 0
    code: str = ""
    seconds: float = 0.0

    def __call__(self, operation: str, key: str, nth: int) -> Fault | None:
        return self


Plan = Callable[[str, str, int], Fault | None]


def error(status: int, code: str = "") -> Fault:
    return Fault(Kind.ERROR, status, code)


def latency(seconds: float) -> Fault:
    """Every answer waits; the plans after it are still asked."""
    return Fault(Kind.DELAY, seconds=seconds)


SLOW_DOWN: Final = error(503, "SlowDown")
INTERNAL_ERROR: Final = error(500, "InternalError")
BAD_GATEWAY: Final = error(502)
GATEWAY_TIMEOUT: Final = error(504)
EXPIRED_TOKEN: Final = error(400, "ExpiredToken")
INVALID_ACCESS_KEY: Final = error(403, "InvalidAccessKeyId")
ACCESS_DENIED: Final = error(403, "AccessDenied")
RESET: Final = Fault(Kind.RESET)
CUT: Final = Fault(Kind.CUT)
STALL: Final = Fault(Kind.STALL)
BLACK_HOLE: Final = Fault(Kind.BLACK_HOLE)
VANISH: Final = Fault(Kind.VANISH)
EMPTY: Final = Fault(Kind.EMPTY)
INCOMPLETE: Final = Fault(Kind.INCOMPLETE)
TRUNCATED: Final = Fault(Kind.TRUNCATED)
TRANSIENT: Final = (SLOW_DOWN, INTERNAL_ERROR, BAD_GATEWAY, GATEWAY_TIMEOUT, RESET)
"""Faults that a caller must retry for any call. RequestTimeout is left out: on HEAD it looks like any other 400."""


def random_faults(
    rate: float, seed: int = 0, kinds: Sequence[Fault] = TRANSIENT, operations: Collection[str] | None = None
) -> Plan:
    """A fraction `rate` of the calls fails. The choice depends on the seed and the call, not on the order of calls."""

    def plan(operation: str, key: str, nth: int) -> Fault | None:
        if not _concerns(operations, operation):
            return None
        drawn = hashlib.blake2b(f"{seed}\0{operation}\0{key}\0{nth}".encode(), digest_size=16).digest()
        if int.from_bytes(drawn[:8]) >= rate * 2**64:
            return None
        return kinds[int.from_bytes(drawn[8:]) % len(kinds)]

    return plan


def first_n(n: int, fault: Fault, operations: Collection[str] | None = None) -> Plan:
    """The first n calls of these operations fail, whatever their keys."""
    left = n

    def plan(operation: str, key: str, nth: int) -> Fault | None:
        nonlocal left
        if left <= 0 or not _concerns(operations, operation):
            return None
        left -= 1
        return fault

    return plan


def on_keys(predicate: Callable[[str], bool], fault: Fault, operations: Collection[str] | None = None) -> Plan:
    """Every call for these keys fails."""

    def plan(operation: str, key: str, nth: int) -> Fault | None:
        return fault if key and _concerns(operations, operation) and predicate(key) else None

    return plan


class Tokens:
    """A token bucket of `size` tokens, full at first: a call takes one, and `rate` a second come back."""

    def __init__(self, rate: float, size: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._size = self._left = max(1.0, size)
        self._clock = clock
        self._at = clock()

    def take(self) -> bool:
        """Take a token; False: the call is refused."""
        now = self._clock()
        self._left = min(self._size, self._left + (now - self._at) * self._rate)
        self._at = now
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True


def _concerns(operations: Collection[str] | None, operation: str) -> bool:
    return operations is None or operation in operations
