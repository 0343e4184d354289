"""Sizes, numbers and durations that several modules of auditor.hashing share."""

from __future__ import annotations

from typing import Final

MIB: Final = 1024 * 1024

BUFFER: Final = MIB
"""Bytes of one buffer: a read fills it, then the hasher takes it whole. A larger buffer leaves the CPU's cache before
it is hashed; smaller ones must change threads more often (docs/performance.md)."""

BYTES_IN_FLIGHT: Final = 40 * MIB
"""Bytes of the buffers of all objects that one process hashes at the same time. One object takes at most 36 MiB."""

CONCURRENCY: Final = 16
"""Number of objects that one process hashes at the same time, if no setting says otherwise."""

LARGE: Final = 64 * MIB
"""Bytes from which an object is large: it has a message of its own and a lease, and several streams may read it."""

ATTEMPTS: Final = 3
"""Number of attempts to read one object in one process, if no setting says otherwise."""

SAVE_SECONDS: Final = 60.0
"""Seconds between two checkpoints of an object."""

MAX_HOPS: Final = 200
"""Number of workers that may leave one object unfinished, one after the other. A 5 TB object needs 80, if each function
invocation hashes 65 GB."""
