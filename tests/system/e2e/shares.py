"""The part of a CPU that a function's memory buys, given to its process through a control group.

1,769 MB are one vCPU: https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final
from uuid import uuid4

import pytest

MB_OF_A_CPU: Final = 1769
_PERIOD: Final = 100_000
_ROOT: Final = Path("/sys/fs/cgroup")
_GONE_SECONDS: Final = 5.0


class Share:
    """A group of one process. Raises OSError where groups cannot be made."""

    def __init__(self, pid: int, memory: int) -> None:
        first = (_ROOT / "cpu").is_dir()
        self.folder = (_first_version() if first else _second_version()) / f"function-{uuid4().hex}"
        self.folder.mkdir()
        quota = _PERIOD * memory // MB_OF_A_CPU
        try:
            if first:
                (self.folder / "cpu.cfs_period_us").write_text(str(_PERIOD))
                (self.folder / "cpu.cfs_quota_us").write_text(str(quota))
            else:
                (self.folder / "cpu.max").write_text(f"{quota} {_PERIOD}")
            (self.folder / "cgroup.procs").write_text(str(pid))
        except OSError:
            self.folder.rmdir()
            raise

    def close(self) -> None:
        """After the process: a group with one in it cannot be removed, and the kernel takes its time."""
        until = time.monotonic() + _GONE_SECONDS
        while self.folder.exists():
            try:
                self.folder.rmdir()
            except OSError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.01)


def _own(controller: str) -> str:
    """Where this process is in a hierarchy; "" names the second version's."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(",") and (controller or not controllers):
            return path.lstrip("/")
    raise OSError(f"this process is in no group of {controller or 'the second version'}")


def _first_version() -> Path:
    return _ROOT / "cpu" / _own("cpu")


def _second_version() -> Path:
    return _ROOT / _own("")


def _possible() -> bool:
    try:
        folder = (_first_version() if (_ROOT / "cpu").is_dir() else _second_version()) / f"try-{uuid4().hex}"
        folder.mkdir()
    except OSError:
        return False
    possible = (folder / "cpu.cfs_quota_us").exists() or (folder / "cpu.max").exists()
    folder.rmdir()
    return possible


needs_groups = pytest.mark.skipif(not _possible(), reason="no control groups for the CPU can be made here")
