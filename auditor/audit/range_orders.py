"""The lines of JSON between the process that began a run and those that audit its ranges: orders and reports."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import AsyncIterator
from typing import Final

from msgspec import Struct

from auditor import errors
from auditor.audit.limits import Limits
from auditor.config.settings import Settings
from auditor.errors import AuditorError, RunError
from auditor.model.target import Target
from auditor.progress import RunCounts

LONGEST: Final = 16 * 1024 * 1024
"""Bytes of the longest line that is read: a sentence with a key, or the settings of a large auditor.toml."""


class Start(Struct, frozen=True):
    """The first line to a process. settings: those of the run, as write_settings() writes them. part_lines: number of
    lines at which a part ends. level: the lowest level of the log.
    """

    run_id: str
    target: Target
    settings: bytes
    part_lines: int
    level: int


class Order(Struct, frozen=True, omit_defaults=True):
    """A further line to a process. range: ID of the range to audit next. rate: the most calls per second from now on;
    None: no limit. limits: the calls and dollars for this range. stop: why the process has to save its range and end.
    """

    range: str | None = None
    rate: float | None = None
    limits: Limits = Limits()
    stop: str | None = None


class RangeOutcome(Struct, frozen=True, omit_defaults=True):
    """The end of the work on a range. complete: False if the range was left before its end, for the `reason`. left: the
    calls and dollars that it did not use. unsent: a sentence on objects that the queue did not take.
    """

    complete: bool
    reason: str | None = None
    left: Limits = Limits()
    unsent: str | None = None


class Report(Struct, frozen=True, omit_defaults=True):
    """A line from a process. counts: of the range in work, at present. end: of the work on that range. failure: the
    error that ended the work: the name of its class, and one sentence. log: a line of the log: its level, the name of
    the logger, and its text.
    """

    counts: RunCounts | None = None
    end: RangeOutcome | None = None
    failure: tuple[str, str] | None = None
    log: tuple[int, str, str] | None = None


def write_settings(settings: Settings) -> bytes:
    """Return the settings as bytes. They are not JSON, because the options of rules may have any type."""
    return pickle.dumps(settings)


def read_settings(data: bytes) -> Settings:
    """Return the settings from the bytes of write_settings()."""
    found: Settings = pickle.loads(data)  # noqa: S301 - from the process that began this one
    return found


def error_of(kind: str, text: str) -> AuditorError:
    """Return the error of a report as an exception of its class."""
    found = getattr(errors, kind, RunError)
    return found(text) if issubclass(found, AuditorError) else RunError(text)


async def whole_lines(stream: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """Yield the lines of a stream. A process that is killed may leave its last one without an end: that is none."""
    while (line := await stream.readline()).endswith(b"\n"):
        yield line
