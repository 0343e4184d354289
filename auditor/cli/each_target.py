"""Run a command on each of its targets in turn: with signals, progress, failures, and one exit code for all."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import TypeVar

from auditor.aio.stop import Stop
from auditor.cli.output import expect, first_word, heard, say
from auditor.cli.progress import Show, make_progress, showing
from auditor.cli.signals import GRACE, stop_on_signals
from auditor.errors import RunError
from auditor.model.target import Target
from auditor.text import visible

R = TypeVar("R")


async def each_target(
    targets: Sequence[Target],
    opening: AbstractAsyncContextManager[R],
    one: Callable[[Target, R, Stop, Show], Awaitable[int]],
    *,
    verb: str,
    kept: str,
) -> int:
    """Run a command's work for each target in turn, and return the worst exit code. A failed target does not stop the
    others.

    opening: opens the resources that the targets share. one: does the work for one target, with these resources, a Stop
    and a display of progress, and returns its exit code. verb: the work as a past participle ("audited"). kept: a
    clause that tells the user what is kept if a second signal, or a silent server, ends the work.
    """
    others = f" and {len(targets) - 1:,} more" if targets[1:] else ""
    first_word(f"asking about {visible(targets[0].uri)}{others}")
    stop, progress = Stop(grace=GRACE), make_progress()
    stop_on_signals(stop)
    codes = []
    async with opening as shared:
        for target in targets:
            if stop:
                say(f"{visible(target.uri)} was not {verb}: {stop.reason}")
                codes.append(4)
                continue
            expect(f"asking about {visible(target.uri)}")
            try:
                async with stop.all() as limit:
                    codes.append(await one(target, shared, stop, partial(showing, progress)))
                if limit.expired():
                    raise asyncio.CancelledError
            except RunError as error:
                say(str(error))
                codes.append(error.exit_code)
            except asyncio.CancelledError:
                say(f"{visible(target.uri)}: given up; {kept}")
                codes.append(4)
            finally:
                heard()
                progress.close()
    return worst(codes)


def worst(codes: Iterable[int]) -> int:
    """Return the worst of these exit codes: 1 (failed), then 4 (not all could be read), then 3 (findings), then 0."""
    found = set(codes)
    return next(code for code in (1, 4, 3, 0) if code in found)
