"""Sizes, numbers and durations that several modules of auditor.hashing share."""

from __future__ import annotations

from typing import Final

MIB: Final = 1024 * 1024

BUFFER: Final = MIB
"""Number of bytes of one buffer, which is read full and then hashed.

A larger buffer leaves the CPU's cache before it is hashed; a smaller one must be passed between threads more often
(docs/performance.md)."""

BYTES_IN_FLIGHT: Final = 40 * MIB
"""Number of bytes of the buffers of all objects that one process hashes at the same time. One object uses at most 36
MiB."""

CONCURRENCY: Final = 16
"""Number of objects that one process hashes at the same time, unless a setting says otherwise."""

STREAMS: Final = 8
"""Largest number of streams for one object, unless a setting asks for more."""

LARGE: Final = 64 * MIB
"""Object size in bytes from which an object has a queue message and a lease of its own, and several streams may read
it."""

ATTEMPTS: Final = 3
"""Number of attempts of one process to read an object, unless a setting says otherwise."""

SAVE_SECONDS: Final = 60.0
"""Seconds between two checkpoints of an object that is being hashed."""

MAX_HOPS: Final = 200
"""Largest number of workers that may leave one object unfinished, one after the other. An object of 5 TB needs 80, if
each invocation of the Lambda function hashes 65 GB."""
