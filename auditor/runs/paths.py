"""The names of runs: run IDs, folders and files in a store."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

from auditor.errors import UsageError
from auditor.model.target import BUCKET_NAME, Target

UNDIVIDED: Final = "00000"
"""The range ID of a run that is not divided into ranges."""

RUN_ID: Final = re.compile(r"([0-9]{8}T[0-9]{6}Z)-[0-9a-f]{6}")
_TIME: Final = "%Y%m%dT%H%M%SZ"


def new_run_id(now: datetime, entropy: bytes) -> str:
    """Return a new run ID. IDs sort by time. now: with a time zone. entropy: three random bytes."""
    if len(entropy) < 3:
        raise ValueError("a run ID takes three bytes")
    return f"{now.astimezone(UTC).strftime(_TIME)}-{entropy[:3].hex()}"


def parse_run_id(text: str) -> datetime:
    """Return the start of the run. Raise UsageError if the text is not a run ID."""
    match = RUN_ID.fullmatch(text)
    try:
        if match:
            return datetime.strptime(match[1], _TIME).replace(tzinfo=UTC)
    except ValueError:  # the 30th of February
        pass
    raise UsageError(f"{text!r} is not a run ID: it is written like 20260102T030405Z-0a1b2c")


def bucket_path(bucket: str) -> str:
    """Return the bucket's folder in a store."""
    if not BUCKET_NAME.fullmatch(bucket):
        raise UsageError(f"{bucket!r} is not a bucket name")
    return f"bucket={bucket}"


def run_path(bucket: str, run_id: str) -> str:
    """Return the run's folder in a store."""
    parse_run_id(run_id)
    return f"{bucket_path(bucket)}/run={run_id}"


def checkpoint_name(range_id: str) -> str:
    """Return the file name of the checkpoint of one range."""
    return "state.json" if range_id == UNDIVIDED else f"state-{range_id}.json"


def target_name(target: Target) -> str:
    """Return the target's name in latest.json: its prefix, with `|versions` for an audit of versions."""
    return f"{target.prefix}{'|versions' if target.versions else ''}"
