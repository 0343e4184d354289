"""What a piece of work costs this process, from the operating system."""

from __future__ import annotations

import gc
import http.client
import json
import os
import re
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

_PEAK: Final = re.compile(r"^VmHWM:\s+(\d+) kB", re.MULTILINE)
MIB: Final = 1024 * 1024


def cpu_seconds() -> float:
    """User and system time of this process, its threads included and its children not."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def peak_memory() -> float:
    """MiB; of this program alone, where ru_maxrss keeps what the process was before it became this program."""
    try:
        found = _PEAK.search(Path("/proc/self/status").read_text())
    except OSError:
        found = None
    return int(found[1]) / 1024 if found else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


@dataclass(frozen=True, slots=True)
class Lap:
    """One piece of work. server: CPU seconds of the server meanwhile, where it was asked."""

    cpu: float
    wall: float
    server: float | None = None


@dataclass(slots=True)
class Meter:
    """counters: where the server tells its own CPU time; it is asked outside of what is measured."""

    counters: str | None = None
    laps: list[Lap] = field(default_factory=list)

    @contextmanager
    def measuring(self) -> Iterator[None]:
        server = self._server()
        cpu, begun = cpu_seconds(), time.perf_counter()
        yield
        cpu, wall = cpu_seconds() - cpu, time.perf_counter() - begun
        after = self._server()
        self.laps.append(Lap(cpu, wall, None if server is None or after is None else after - server))

    def _server(self) -> float | None:
        return None if self.counters is None else float(ask(self.counters, "GET", "/-/counters")["cpu"])

    def to_dict(self) -> dict[str, Any]:
        return {"laps": [asdict(lap) for lap in self.laps], "peak": peak_memory(), "total_cpu": cpu_seconds()}


def come_first() -> None:
    """For what is not measured but must not be late, as if it were on a machine of its own; where that is allowed."""
    gc.disable()
    with suppress(OSError):
        os.nice(-10)


def ask(url: str, method: str, path: str, value: Any = None) -> Any:
    """A question to the server's control, by no client that is measured."""
    where = urlsplit(url)
    connection = http.client.HTTPConnection(str(where.hostname), where.port, timeout=30)
    try:
        connection.request(method, path, None if value is None else json.dumps(value))
        return json.loads(connection.getresponse().read())
    finally:
        connection.close()
