"""Describe the machine of the measurements: its kind and the versions, but no name or path."""

from __future__ import annotations

import os
import platform
import re
import ssl
from importlib.metadata import version
from pathlib import Path
from typing import Final

LIBRARIES: Final = ("aioboto3", "aiohttp", "boto3", "httptools", "uvloop")
_MODEL: Final = re.compile(r"^model name\s*:\s*(.+)$", re.MULTILINE)
_MEMORY: Final = re.compile(r"^MemTotal:\s+(\d+) kB", re.MULTILINE)


def _found(path: str, pattern: re.Pattern[str]) -> str:
    try:
        match = pattern.search(Path(path).read_text())
    except OSError:
        match = None
    return match[1] if match else ""


def describe() -> dict[str, str]:
    memory = _found("/proc/meminfo", _MEMORY)
    return {
        "CPU": _found("/proc/cpuinfo", _MODEL) or platform.machine(),
        "cores": str(os.cpu_count() or 1),
        "memory": f"{round(int(memory) / 1024 / 1024)} GiB" if memory else "unknown",
        "system": f"{platform.system()} {platform.release().partition('-')[0]}",
        "Python": platform.python_version(),
        "OpenSSL": ssl.OPENSSL_VERSION.partition(" ")[2].partition(" ")[0],
        **{name: version(name) for name in LIBRARIES},
    }
