"""Fail a test when code of ours blocks the event loop; a module imports `free_loop` for its tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest
from blockbuster import BlockBuster, BlockingError, blockbuster_ctx

__all__ = ["BlockingError", "free_loop", "watched_loop"]

MAY_BLOCK: Final = (
    # botocore reads its service models when the client is made: once a run, before the first call.
    ("auditor/s3/engines/aioboto3.py", {"open_engine"}),
    # The user's AWS configuration, a short file, read while the bucket's facts are; objects come later.
    ("auditor/aws/session.py", {"custom_endpoint"}),
    # Held by the folder's thread for a copy of a few counts at most; never over a file.
    ("auditor/runs/segment.py", {"write", "passed", "write_findings"}),
    # The end of a run: the pool's threads have nothing left to do.
    ("concurrent/futures/thread.py", {"shutdown"}),
)
"""Files and functions that may block, each with its reason."""


@contextmanager
def watched_loop() -> Iterator[BlockBuster]:
    """Blocking calls (files, sockets, sleep, locks, SQLite) made by `auditor` on a loop raise BlockingError."""
    with blockbuster_ctx(scanned_modules=["auditor"]) as watch:
        for function in watch.functions.values():
            for filename, names in MAY_BLOCK:
                function.can_block_in(filename, names)
        yield watch


@pytest.fixture(autouse=True)
def free_loop() -> Iterator[None]:
    """Watch the loop during the test."""
    with watched_loop():
        yield
