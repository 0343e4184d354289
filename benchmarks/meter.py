"""Measure the cost of a piece of work for this process, by the operating system's counters."""

from __future__ import annotations

import gc
import http.client
import json
import os
import re
import resource
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

_PEAK: Final = re.compile(r"^VmHWM:\s+(\d+) kB", re.MULTILINE)
MIB: Final = 1024 * 1024


def cpu_seconds() -> float:
    """User and system time of this process in seconds, with its threads and without its children."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def peak_memory() -> float:
    """Peak memory in MiB of this program alone; ru_maxrss would include the process before exec."""
    try:
        found = _PEAK.search(Path("/proc/self/status").read_text())
    except OSError:
        found = None
    return int(found[1]) / 1024 if found else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


@dataclass(frozen=True, slots=True)
class Lap:
    """The cost of one piece of work. server: CPU seconds of the server in that time, if it was asked."""

    cpu: float
    wall: float
    server: float | None = None


@dataclass(slots=True)
class Meter:
    """counters: URL of the server's CPU time; it is read outside of the measured work."""

    counters: str | None = None
    laps: list[Lap] = field(default_factory=list)

    @contextmanager
    def measuring(self, used: Callable[[], float] = cpu_seconds) -> Iterator[None]:
        """Measure the work within. used: the CPU seconds so far, by default of this process."""
        server = self._server()
        cpu, begun = used(), time.perf_counter()
        yield
        wall, cpu = time.perf_counter() - begun, used() - cpu
        after = self._server()
        self.laps.append(Lap(cpu, wall, None if server is None or after is None else after - server))

    def _server(self) -> float | None:
        return None if self.counters is None else float(ask(self.counters, "GET", "/-/counters")["cpu"])

    def to_dict(self) -> dict[str, Any]:
        return {"laps": [asdict(lap) for lap in self.laps], "peak": peak_memory(), "total_cpu": cpu_seconds()}


def come_first() -> None:
    """Raise the priority of unmeasured work that must not be late, if the system allows it."""
    gc.disable()
    with suppress(OSError):
        os.nice(-10)


def ask(url: str, method: str, path: str, value: Any = None) -> Any:
    """Send a request to the server's control, without a measured client."""
    where = urlsplit(url)
    connection = http.client.HTTPConnection(str(where.hostname), where.port, timeout=30)
    try:
        connection.request(method, path, None if value is None else json.dumps(value))
        return json.loads(connection.getresponse().read())
    finally:
        connection.close()
