"""How the server behaves, changed between runs, and what it counts."""

from __future__ import annotations

import random
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

Clock = Callable[[], float]
LONGEST_LOG: Final = 1_000_000
"""Refusals are kept with their moments, for a run's settled part; a run has fewer than these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """objects: in the bucket. strangers: how many other accounts have a READ on objects, each on every so manyth; 0:
    none, and nearly all ACLs are equal. latency: seconds before an answer's first byte. rate: calls a second and
    prefix, above which 503 SlowDown is answered; None: no limit. burst: seconds of unused rate that are kept.
    error_rate: share of calls that are answered 500. bandwidth: bytes a second and connection, either way; None: all
    there is.
    """

    objects: int = 1000
    strangers: int = 0
    latency: float = 0.0
    rate: float | None = None
    burst: float = 1.0
    error_rate: float = 0.0
    bandwidth: float | None = None

    def changed(self, fields: Mapping[str, Any]) -> Behaviour:
        """Raises TypeError for a field that there is not."""
        return replace(self, **fields)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


class Bucket:
    """A token bucket: `rate` calls a second, and `burst` seconds of them kept while nobody calls; full at first."""

    def __init__(self, rate: float, burst: float, clock: Clock = time.monotonic) -> None:
        self._rate = rate
        self._size = max(1.0, rate * burst)
        self._left = self._size
        self._clock = clock
        self._at = clock()

    def take(self) -> bool:
        """False: refuse this call."""
        now = self._clock()
        self._left = min(self._size, self._left + (now - self._at) * self._rate)
        self._at = now
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True


@dataclass(slots=True)
class Counters:
    """answered: by kind of call, refused ones not among them. refused, admitted: of each caller by whole second."""

    answered: Counter[str] = field(default_factory=Counter)
    errors: int = 0
    connections: int = 0
    refused: defaultdict[str, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))
    admitted: defaultdict[str, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))

    def to_dict(self) -> dict[str, Any]:
        return {
            "answered": dict(self.answered),
            "errors": self.errors,
            "connections": self.connections,
            "refused": {caller: dict(seconds) for caller, seconds in self.refused.items()},
            "admitted": {caller: dict(seconds) for caller, seconds in self.admitted.items()},
            "cpu": time.process_time(),
        }


class Gate:
    """Says of each call whether it is answered; one for the server, so that all connections share a prefix's rate."""

    def __init__(self, behaviour: Behaviour, clock: Clock = time.monotonic) -> None:
        self.behaviour = behaviour
        self.counters = Counters()
        self._clock = clock
        self._buckets: dict[str, Bucket] = {}
        self._dice = random.Random(1)

    def set(self, fields: Mapping[str, Any]) -> None:
        """Change the behaviour, count from nothing, and let every prefix's bucket be full."""
        self.behaviour = self.behaviour.changed(fields)
        self.counters = Counters()
        self._buckets.clear()

    def refuses(self, prefix: str, caller: str) -> int:
        """The status of the refusal, or 0: the call is answered."""
        behaviour = self.behaviour
        if behaviour.rate is not None:
            bucket = self._buckets.get(prefix)
            if bucket is None:
                bucket = self._buckets[prefix] = Bucket(behaviour.rate, behaviour.burst, self._clock)
            allowed, second = bucket.take(), int(self._clock())
            (self.counters.admitted if allowed else self.counters.refused)[caller][second] += 1
            if not allowed:
                return 503
        if behaviour.error_rate and self._dice.random() < behaviour.error_rate:
            self.counters.errors += 1
            return 500
        return 0
