"""The thread that reads and writes the run folder of an audit, and the time that it has after a stop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, TypeVar

from auditor.aio.stop import Stop
from auditor.errors import RunStopped
from auditor.runs.segment import Segment

T = TypeVar("T")


class FolderThread:
    """Runs blocking work on a run folder in one thread. stop: ends the time for saving, once it is set."""

    def __init__(self, stop: Stop) -> None:
        self._stop = stop
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="auditor-folder")

    async def run(self, work: Callable[..., Any], *args: Any) -> Any:
        """Run the work in the thread, with the present labels of the log, and return its result."""
        return await asyncio.get_running_loop().run_in_executor(self._executor, copy_context().run, work, *args)

    async def save(self, uri: str, work: Callable[[], T]) -> T:
        """Run work that writes the run folder, and return its result. uri: of the folder.

        Raises RunStopped if the work has not ended when the time for saving after a stop is over.
        """
        async with self._stop.saving() as limit:
            result: T = await self.run(work)
        if limit.expired():
            raise silent(uri, self._stop)
        return result

    async def close(self, segment: Segment) -> None:
        """Close a segment, unless the time for saving is over."""
        async with self._stop.saving():
            await self.run(segment.close)

    def end(self) -> None:
        """End the thread without waiting: a store that does not answer would block for minutes."""
        self._executor.shutdown(wait=False)


def silent(uri: str, stop: Stop) -> RunStopped:
    """Return the error for a server that did not answer before the end. uri: the place that was asked."""
    return RunStopped(f"{uri} did not answer before the end ({stop.reason})")
