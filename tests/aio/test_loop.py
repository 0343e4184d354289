"""The loop of our programs, and its effects on the process."""

from __future__ import annotations

import gc
import platform
import subprocess
import sys
from collections.abc import Iterator

import pytest

from auditor.aio.loop import COLLECT_AFTER, new_loop


@pytest.fixture(autouse=True)
def same_thresholds() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


@pytest.mark.parametrize(("before", "after"), [(700, COLLECT_AFTER), (2 * COLLECT_AFTER, 2 * COLLECT_AFTER), (0, 0)])
def test_cycles_are_looked_for_less_often_unless_somebody_has_decided_that(before: int, after: int) -> None:
    _, *older = gc.get_threshold()
    gc.set_threshold(before, *older)
    new_loop().close()
    assert gc.get_threshold() == (after, *older)


_TRIMMED = """
import gc, pathlib
from auditor.aio.loop import new_loop, trim
def resident():
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * 4096
new_loop().close()
held = [bytearray(64 * 1024) for _ in range(800)]  # below what is taken from the system one by one
last = bytearray(64 * 1024)  # above them in the heap: without trimming all of it stays
held.clear()
before = resident()
trim()
print(before - resident() > 800 * 64 * 1024 // 2)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library's heap")
def test_what_was_freed_in_the_middle_of_the_heap_goes_back() -> None:
    found = subprocess.run([sys.executable, "-c", _TRIMMED], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "True"
