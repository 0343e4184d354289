"""The signals that a process handles, by Linux's /proc."""

from __future__ import annotations

import signal
from pathlib import Path


def catches(pid: int, number: signal.Signals) -> bool:
    """The process has a handler for the signal."""
    status = Path(f"/proc/{pid}/status").read_text()
    (mask,) = [line.split()[1] for line in status.splitlines() if line.startswith("SigCgt")]
    return bool(int(mask, 16) & 1 << number - 1)
