"""The names in a store: run IDs, and the folders and files of runs."""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime, timedelta
from typing import Final

from auditor.errors import UsageError
from auditor.model.target import BUCKET_NAME, Target

FIRST: Final = "00000"
"""ID of the first range of a run. Most runs have no other one."""
CHECKPOINTS: Final = "checkpoint"
"""The folder below that of a run with the files of its unfinished ranges. It is gone when the run is complete."""

RUN_ID: Final = re.compile(r"([0-9]{8}T[0-9]{6}Z)-[0-9a-f]{6}")
_TIME: Final = "%Y%m%dT%H%M%SZ"


def new_run_id(now: datetime, entropy: bytes) -> str:
    """Make a run ID, such as 20260102T030405Z-0a1b2c. IDs sort by time. now: with a zone. entropy: 3 random bytes."""
    if len(entropy) < 3:
        raise ValueError("a run ID takes three bytes")
    return f"{now.astimezone(UTC).strftime(_TIME)}-{entropy[:3].hex()}"


def next_run_id(run_id: str) -> str:
    """Make the ID of a run that begins now in place of another one. The same run gives the same last part."""
    return new_run_id(datetime.now(UTC), hashlib.sha256(f"after {run_id}".encode()).digest())


def later_run_id(run_id: str, newest: str) -> str:
    """Return a run ID that sorts after the ID `newest`: `run_id` itself, or else its last part with the second after
    the time of `newest`. Two runs that begin in the same second sort by their last parts, in any order.
    """
    if run_id > newest:
        return run_id
    return f"{(parse_run_id(newest) + timedelta(seconds=1)).strftime(_TIME)}-{run_id.rpartition('-')[2]}"


def began_later(run_id: str, other: str) -> bool:
    """True if the run began in a later second than the other one. Two runs of one second are in no order."""
    return run_id.partition("-")[0] > other.partition("-")[0]


def same_start(run_id: str, other: str) -> bool:
    """True if both run IDs come from the same event. The last part of an ID is made from its event."""
    return run_id.rpartition("-")[2] == other.rpartition("-")[2]


def parse_run_id(text: str) -> datetime:
    """Return the time in a run ID, at which the run began. Raises UsageError if the text is no run ID."""
    match = RUN_ID.fullmatch(text)
    try:
        if match:
            return datetime.fromisoformat(match[1])
    except ValueError:  # the 30th of February
        pass
    raise UsageError(f"{text!r} is not a run ID: it is written like 20260102T030405Z-0a1b2c")


def began_at(run_id: str) -> str:
    """Return the time at which the run began, in ISO 8601 in UTC. Raises UsageError if the text is no run ID."""
    return parse_run_id(run_id).strftime("%Y-%m-%dT%H:%M:%SZ")


def bucket_path(bucket: str) -> str:
    """Return the path of a bucket's folder in a store. Raises UsageError if this is no bucket name."""
    if not BUCKET_NAME.fullmatch(bucket):
        raise UsageError(f"{bucket!r} is not a bucket name")
    return f"bucket={bucket}"


def run_path(bucket: str, run_id: str) -> str:
    """Return the path of a run's folder in a store. Raises UsageError for a wrong bucket name or run ID."""
    parse_run_id(run_id)
    return f"{bucket_path(bucket)}/run={run_id}"


def range_name(number: int) -> str:
    """Return the ID of a range. number: its place, from 0 on."""
    return f"{number:05}"


def checkpoint_name(range_id: str) -> str:
    """Return the name of the file that says how far a range is."""
    return f"{CHECKPOINTS}/{range_id}.json"


def range_seal_name(range_id: str) -> str:
    """Return the name of the file with the digests of the parts of a range, which the seal of the run takes over."""
    return f"{CHECKPOINTS}/parts-{range_id}.json"


def range_keys_name(range_id: str) -> str:
    """Return the name of the file with the policies of KMS keys that a range has read."""
    return f"{CHECKPOINTS}/keys-{range_id}.json"


def target_name(target: Target) -> str:
    """Return the target's name in latest.json: its prefix, and `|versions` if the audit is of all versions."""
    return f"{target.prefix}{'|versions' if target.versions else ''}"
