"""Handle Ctrl-C and SIGTERM: after the first, a command ends within five seconds, even if no server answers."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

from auditor.aio import loop as loops
from auditor.aio.stop import Grace, Stop
from auditor.cli.output import say
from auditor.cli.process_end import GivenUp, end_soon

T = TypeVar("T")

GRACE: Final = Grace(flight=1.5, sending=2.0, saving=3.3, all=3.8)


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run the coroutine of a command in an event loop, and return its result. An unhandled Ctrl-C cancels the
    coroutine. Raises GivenUp if the coroutine was cancelled.

    Afterwards the signal handlers are as before; uvloop itself would leave its own handlers in place.
    """

    async def watched() -> T:
        task = asyncio.current_task()
        assert task is not None

        def caught() -> None:
            end_soon()
            task.cancel()

        if in_main_thread:
            asyncio.get_running_loop().add_signal_handler(signal.SIGINT, caught)
        return await main

    in_main_thread = threading.current_thread() is threading.main_thread()  # no other thread may set handlers
    before = [(number, signal.getsignal(number)) for number in (signal.SIGINT, signal.SIGTERM)]
    try:
        return loops.run(watched())
    except asyncio.CancelledError as error:
        raise GivenUp from error
    finally:
        for number, handler in before:
            if in_main_thread and handler is not None:  # None: not a handler of Python
                signal.signal(number, handler)


def stop_on_signals() -> Stop:
    """Handle Ctrl-C and SIGTERM in the running event loop: the first signal sets the Stop that is returned, the second
    cancels the present task.

    After the first signal, the listing ends, and calls in flight may finish within the time that the stop's Grace gives
    them.
    """
    stop = Stop(grace=GRACE)
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()

    def caught(name: str) -> None:
        if stop:
            if task is not None:
                task.cancel()
            return
        end_soon()
        stop.set(f"stopped by {name}")
        say(f"{name}: finishing work in flight; repeat the signal to stop at once")

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, caught, number.name)
    return stop
