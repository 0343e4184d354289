"""The messages between the process of a divided run and those that audit its ranges: JSON, one message a line."""

from __future__ import annotations

import asyncio
import base64
import json
import pickle
from collections.abc import AsyncIterator
from typing import Final, Self

from msgspec import Struct, field, to_builtins

from auditor import errors
from auditor.audit.begin import Limits
from auditor.config.settings import Settings
from auditor.errors import AuditorError, RunError
from auditor.model.json_codec import converted
from auditor.model.target import Target
from auditor.progress import RunCounts

LONGEST: Final = 16 * 1024 * 1024
"""Bytes of the longest line that is read: a sentence with a key, or the settings of a large auditor.toml."""


class Start(Struct, frozen=True):
    """The first message to a process: everything that it needs for any range. It is not JSON, because settings have
    many types. part_lines: number of lines at which a part ends. level: the lowest level of the log.
    """

    run_id: str
    target: Target
    settings: Settings
    part_lines: int
    level: int

    def to_line(self) -> bytes:
        return base64.b64encode(pickle.dumps(self)) + b"\n"

    @classmethod
    def from_line(cls, line: bytes) -> Self:
        """Read the line of to_line(), which comes from the process that began this one."""
        found = pickle.loads(base64.b64decode(line))  # noqa: S301 - from the process that began this one
        assert isinstance(found, cls)
        return found


class Order(Struct, frozen=True):
    """A message to a process. range: audit this range next. rate: the most calls per second from now on, None for no
    limit. left: what --max-calls and --max-cost leave for this range. stop: end at once, for this reason. done: there
    is no further range.
    """

    range: str | None = None
    rate: float | None = None
    left: Limits = field(default_factory=Limits)
    stop: str | None = None
    done: bool = False


class Failure(Struct, frozen=True):
    """An error of a process. kind: name of its class. text: one sentence."""

    kind: str
    text: str

    @classmethod
    def of(cls, error: Exception) -> Self:
        if isinstance(error, AuditorError):
            return cls(type(error).__name__, str(error))
        return cls(RunError.__name__, f"this is a bug, please report it: {type(error).__name__}: {error}")

    def error(self) -> AuditorError:
        """Return the error as an exception of its class."""
        kind = getattr(errors, self.kind, None)
        if isinstance(kind, type) and issubclass(kind, AuditorError):
            return kind(self.text)
        return RunError(self.text)


class Report(Struct, frozen=True):
    """A message from a process: it is ready for a range, counts its progress, has left the range, failed, or logs.

    counts: of the range in work. ended: the range was left: complete or not, with `reason`. left: what it has left of
    its limits. leaves: this process was told to end, and another one is to continue the range. failure: the range
    failed. unsent: a sentence on objects that the queue did not take. log: a line of the log with its level
    and the logger's name.
    """

    counts: RunCounts | None = None
    ended: bool = False
    complete: bool = False
    leaves: bool = False
    reason: str | None = None
    left: Limits = field(default_factory=Limits)
    failure: Failure | None = None
    unsent: str | None = None
    log: tuple[int, str, str] | None = None


async def whole_lines(stream: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """Yield the lines of a stream. A process that is killed may leave its last one without an end: that is none."""
    while (line := await stream.readline()).endswith(b"\n"):
        yield line


def line_of(message: Order | Report) -> bytes:
    return json.dumps(to_builtins(message)).encode() + b"\n"


def order_from(line: bytes) -> Order:
    return converted(Order, json.loads(line))


def report_from(line: bytes) -> Report:
    return converted(Report, json.loads(line))
