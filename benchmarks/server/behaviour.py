"""The behaviour of the server, which each run sets anew, and its counters."""

from __future__ import annotations

import random
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

from tests.support.servers.stub_faults import Tokens

Clock = Callable[[], float]
LONGEST_LOG: Final = 1_000_000
"""The server keeps the moment of each refusal, up to this number; a run has fewer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """The settings of the server."""

    objects: int = 1000
    """Objects in the bucket."""
    size: int | None = None
    """Bytes of each object; None for up to 10 MB."""
    strangers: int = 0
    """The number N of other accounts with a READ; each has it on every Nth object. With 0 nearly all ACLs are equal."""
    latency: float = 0.0
    """Seconds before an answer's first byte."""
    rate: float | None = None
    """Calls a second and prefix before 503 SlowDown; None for no limit."""
    burst: float = 1.0
    """Seconds of unused rate that are saved."""
    error_rate: float = 0.0
    """Share of calls with an answer of 500."""
    refused_share: float = 0.0
    """Share of calls with an answer of 503 SlowDown, at any rate."""
    bandwidth: float | None = None
    """Bytes a second and connection, either way; None for no limit."""

    def changed(self, fields: Mapping[str, Any]) -> Behaviour:
        """The behaviour with some fields changed. Raises TypeError for an unknown field."""
        return replace(self, **fields)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(slots=True)
class Counters:
    """The counters. answered: calls by kind, without refused ones. refused, admitted: by caller and whole second."""

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
    """Decides if a call is answered. The server has one, so that all connections share the rate of a prefix."""

    def __init__(self, behaviour: Behaviour, clock: Clock = time.monotonic) -> None:
        self.behaviour = behaviour
        self.counters = Counters()
        self._clock = clock
        self._buckets: dict[str, Tokens] = {}
        self._dice = random.Random(1)

    def set(self, fields: Mapping[str, Any]) -> None:
        """Change the behaviour, reset the counters, and fill the bucket of every prefix."""
        self.behaviour = self.behaviour.changed(fields)
        self.counters = Counters()
        self._buckets.clear()

    def refuses(self, prefix: str, caller: str) -> int:
        """The status of the refusal; 0 for a call that is answered."""
        behaviour = self.behaviour
        if behaviour.rate is not None:
            bucket = self._buckets.get(prefix)
            if bucket is None:
                bucket = self._buckets[prefix] = Tokens(behaviour.rate, behaviour.rate * behaviour.burst, self._clock)
            allowed, second = bucket.take(), int(self._clock())
            (self.counters.admitted if allowed else self.counters.refused)[caller][second] += 1
            if not allowed:
                return 503
        if behaviour.refused_share and self._dice.random() < behaviour.refused_share:
            self.counters.refused[caller][int(self._clock())] += 1
            return 503
        if behaviour.error_rate and self._dice.random() < behaviour.error_rate:
            self.counters.errors += 1
            return 500
        return 0
