"""Packages of a few bytes, in the place of those that uv installs."""

from __future__ import annotations

import gzip
import os
import struct
import zipfile
from pathlib import Path

from auditor.aws.session import SERVICES
from deploy.options import Options

MACHINES = {"x86_64": 62, "arm64": 183}


def library(architecture: str, tail: bytes = b"sections and symbols") -> bytes:
    """An ELF header, one segment of four bytes, and what follows it."""
    header = bytearray(b"\x7fELF\x02\x01\x01".ljust(64, b"\0"))
    struct.pack_into("<H", header, 18, MACHINES[architecture])
    struct.pack_into("<Q", header, 32, 64)
    struct.pack_into("<Q", header, 40, 64 + 56 + 4)
    struct.pack_into("<HHHHH", header, 54, 56, 1, 64, 3, 2)
    segment = struct.pack("<IIQQQQQQ", 1, 5, 64 + 56, 0, 0, 4, 4, 8)
    return bytes(header) + segment + b"code" + tail


class Packages:
    """Stands for uv: writes a few packages, counts how often."""

    def __init__(self, **more: bytes) -> None:
        self.calls = 0
        self._more = more

    def __call__(self, folder: Path, options: Options) -> None:
        self.calls += 1
        model = gzip.compress(b'{"documentation": "what the service does"}', mtime=0)
        files = {f"botocore/data/{name}/2020-01-01/service-2.json.gz": model for name in (*SERVICES, "ec2")}
        files |= {"sdk/__init__.py": b"x = 1\n", "sdk/fast.so": library(options.architecture)}
        for name, content in (files | self._more).items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            os.utime(path, (self.calls * 1e9, self.calls * 1e9))


def names(path: Path) -> list[str]:
    with zipfile.ZipFile(path) as archive:
        return archive.namelist()
