"""Sizes, counts and times that several modules of this room share."""

from __future__ import annotations

from typing import Final

MIB: Final = 1024 * 1024

BUFFER: Final = MIB
"""Bytes of one read, which the hasher takes in one piece. A larger buffer leaves the CPU's cache before it is hashed; a
smaller one costs more hand-overs (docs/performance.md)."""

BYTES_IN_FLIGHT: Final = 40 * MIB
"""Buffers of all objects that one process hashes at the same time; one object takes 36 MiB of them at most."""

CONCURRENCY: Final = 16
"""Objects that one process hashes at the same time, unless a setting says otherwise."""

LARGE: Final = 64 * MIB
"""Bytes from which an object travels in a message of its own, is hashed under a lease, and may get several streams."""

ATTEMPTS: Final = 3
"""Reads of one object in one process, unless a setting says otherwise."""

SAVE_SECONDS: Final = 60.0
"""Seconds between two checkpoints of an object."""

MAX_HOPS: Final = 200
"""Workers that may leave one object unfinished. 5 TB at 65 GB an invocation take 80."""
