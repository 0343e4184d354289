"""Run a coroutine for a caller that blocks, even in a thread whose event loop is running, as in a notebook."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextvars import copy_context
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from auditor.offline.library.keywords import renamed

P = ParamSpec("P")
T = TypeVar("T")


def blocking(function: Callable[P, Coroutine[Any, Any, T]], kind: type) -> Callable[P, T]:
    """Return the form of a function of the library that blocks until its end. It takes no `stop`.

    function: documented, with a name that ends in _async. kind: the class of keyword_types with its settings.
    """

    @wraps(function)
    def call(*arguments: P.args, **keywords: P.kwargs) -> T:
        if "stop" in keywords:
            renamed({"stop": None}, kind)  # refuses it: it is no setting either
        signature.bind(*arguments, **keywords)  # a wrong call then names no async function
        return run_blocking(lambda: function(*arguments, **keywords))

    whole, named = inspect.signature(function), function.__name__
    parameters = [one for name, one in whole.parameters.items() if name != "stop"]
    signature = whole.replace(parameters=parameters)
    call.__dict__["__signature__"] = signature
    call.__name__ = call.__qualname__ = named.removesuffix("_async")
    first, _, rest = (inspect.getdoc(function) or "").partition("\n\n")
    without = ", without `stop`" if "stop" in whole.parameters else ""
    same = f"Blocks until the end, in a notebook too. The parameters and the errors are those of {named}{without}."
    call.__doc__ = f"{first}\n\n{same}\n\nSettings:{rest.partition('Settings:')[2]}"
    return call


def run_blocking(make: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run the coroutine that `make` returns, and return its result. `make` is called in the thread whose loop runs it.

    If the present thread has a running loop, the coroutine gets a thread and a loop of its own. Ctrl-C cancels the
    coroutine, waits for its end, and is then raised.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(make())
    began: Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = Future()
    ended: Future[T] = Future()
    work = (_in_thread, make, began, ended)
    thread = threading.Thread(target=copy_context().run, args=work, name="auditor-blocking")
    thread.start()
    try:
        return ended.result()
    except BaseException:
        if thread.is_alive():
            loop, task = began.result()
            loop.call_soon_threadsafe(task.cancel)
        raise
    finally:
        thread.join()


def _in_thread(
    make: Callable[[], Coroutine[Any, Any, T]],
    began: Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]],
    ended: Future[T],
) -> None:
    async def main() -> T:
        task = asyncio.current_task()
        assert task is not None
        began.set_result((asyncio.get_running_loop(), task))
        return await make()

    try:
        ended.set_result(asyncio.run(main()))
    except BaseException as error:  # the waiting thread raises it
        ended.set_exception(error)
