"""Run a command on each of its targets, some side by side: with signals, progress, failures, and one exit code.

The runs are told of on the channels that the settings name. Without such a setting nothing is sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import partial
from typing import Final, TypeVar

from msgspec import Struct

from auditor.aio.stop import Stop
from auditor.aio.tasks import task_group
from auditor.cli.output import expect, first_word, heard, say
from auditor.cli.progress import Show, Together, make_progress, showing
from auditor.cli.signals import stop_on_signals
from auditor.config.channels import channels_of
from auditor.config.settings import CHANNELS, Settings
from auditor.errors import AuditorError, RunError
from auditor.model.alert import Alert, RunEvent, failure_alert
from auditor.model.target import Target
from auditor.text import visible

R = TypeVar("R")

FAILED = 1
HOLE = 4

_SECONDS: Final = 60.0
"""Seconds in which the channels take an alert and an event."""


async def each_target(
    targets: Sequence[Target],
    opening: AbstractAsyncContextManager[R],
    one: Callable[[Target, R, Stop, Show], Awaitable[int]],
    *,
    verb: str,
    kept: str,
    at_once: int = 1,
    failed: Callable[[Target, str, int], None] | None = None,
    stop: Stop | None = None,
) -> int:
    """Run a command's work for each target, and return one exit code. A failed target does not stop the others: among
    several it is a hole (4), unless all failed.

    opening: opens the resources that the targets share. one: does the work for one target, with these resources, a Stop
    and a display of progress, and returns its exit code. verb: the work as a past participle ("audited"). kept: a
    clause that tells the user what is kept if a second signal, or a silent server, ends the work. at_once: largest
    number of targets that are worked on side by side. failed: called with a target that failed or was given up, a
    sentence, and the target's exit code. stop: the one that signals set already; None: they are handled from now on.
    """
    others = f" and {len(targets) - 1:,} more" if targets[1:] else ""
    first_word(f"asking about {visible(targets[0].uri)}{others}")
    stop, progress = stop_on_signals() if stop is None else stop, make_progress()
    codes: dict[Target, int] = {}
    at_once = min(at_once, len(targets))
    display: AbstractAsyncContextManager[None] = nullcontext()
    show: Show = partial(showing, progress)
    if at_once > 1:
        together = Together(len(targets))
        display, show = showing(progress, together.snapshot, ends=False), together.show
    async with opening as shared:
        alone = len(targets) == 1
        work = _Work(lambda target: one(target, shared, stop, show), stop, verb, kept, alone=alone, failed=failed)
        waiting = iter(targets)
        try:
            async with display, task_group() as group:
                for _ in range(at_once):
                    group.create_task(_each(waiting, work, codes))
        except asyncio.CancelledError:
            pass  # a second signal: each target was given up, with a sentence
        finally:
            progress.close()
    return combined(codes.values())


async def _each(waiting: Iterator[Target], work: _Work, codes: dict[Target, int]) -> None:
    for target in waiting:
        try:
            codes[target] = await work.do(target)
        except Exception as error:  # a bug, or stdout is gone: the other targets end in order
            work.stop.set(f"{type(error).__name__} at {visible(target.uri)}")
            raise


class _Work(Struct, frozen=True):
    """The work for one target after another. alone: True if there is one target only."""

    one: Callable[[Target], Awaitable[int]]
    stop: Stop
    verb: str
    kept: str
    alone: bool
    failed: Callable[[Target, str, int], None] | None

    async def do(self, target: Target) -> int:
        """Do the work for the target, and return its exit code. A RunError is reported, and so is any error of one of
        several targets; the other targets continue.
        """
        name = visible(target.uri)
        if self.stop:
            return self._fail(target, f"{name} was not {self.verb}: {self.stop.reason}", HOLE)
        expect(f"asking about {name}")
        try:
            async with self.stop.all() as limit:
                code = await self.one(target)
            if not limit.expired():
                return code
        except RunError as error:
            return self._fail(target, str(error), error.exit_code)
        except AuditorError as error:
            if self.alone:
                raise
            return self._fail(target, f"{name}: {error}", FAILED)
        except asyncio.CancelledError:
            pass
        finally:
            heard()
        return self._fail(target, f"{name}: stopped at once; {self.kept}", HOLE)

    def _fail(self, target: Target, sentence: str, code: int) -> int:
        say(sentence)
        if self.failed is not None:
            self.failed(target, sentence, code)
        return code


def combined(codes: Iterable[int]) -> int:
    """Return one exit code for the codes of several targets: 1 if all failed, or 2 if each was refused; 4 if one failed
    or could not be read, 3 for findings, or 0.
    """
    found = set(codes)
    if found.isdisjoint((HOLE, 3, 0)):
        return min(found)
    return max(found) if found <= {3, 0} else HOLE


class Teller:
    """Sends alerts and events for the runs of one command. A failed alert never hides the result of a run: the command
    says so in a sentence, and ends with exit code 1 unless the runs have another one.

    noun: "audit" or "verification".
    """

    def __init__(self, settings: Settings, noun: str) -> None:
        self._channels = channels_of(settings) if any(getattr(settings, name) for name in CHANNELS) else None
        self._noun = noun
        self._failures: list[str] = []
        self._undelivered = False

    async def tell(self, alert: Alert | None, event: RunEvent | None = None) -> None:
        """Send the alert and the event. Print a sentence if a channel does not take it."""
        if self._channels is None:
            return
        try:
            async with asyncio.timeout(_SECONDS):
                await self._channels.tell(alert, event)
        except (AuditorError, TimeoutError) as error:
            self._undelivered = True
            say(f"an alert or event was not sent: {str(error) or 'the channel did not answer'}")

    def failed(self, sentence: str) -> None:
        """Note the failure of one target, for the alert at the end of the command."""
        self._failures.append(sentence)

    async def around(self, work: Awaitable[int]) -> int:
        """Do the work of the whole command, send one alert on its failures, and return the exit code."""
        try:
            code = await work
        except AuditorError as error:
            self.failed(str(error))
            await self._tell_failures()
            raise
        await self._tell_failures()
        return code or int(self._undelivered)

    async def _tell_failures(self) -> None:
        if self._failures:
            await self.tell(failure_alert(self._noun, "; ".join(self._failures)))
