"""Start the processes that audit ranges, also ahead of their work: they import while the ranges are planned."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from contextlib import suppress
from pathlib import Path
from typing import Final

from auditor.audit.divided.messages import LONGEST

MODULE: Final = "auditor.audit.divided.child"
_ROOT: Final = str(Path(__file__).parents[3])
"""The folder that has the package."""
_PROGRAM: Final = "import runpy, sys; sys.path.append(sys.argv[1]); runpy.run_module(sys.argv[2], run_name='__main__')"
"""Runs a module, which may lie beside this package. `python -m` would search the working directory before all others:
any file there that has the name of a module would be run."""


class ProcessStarter:
    """Starts processes with pipes as stdin and stdout. module: name of the module that each process runs.

    A process that was started ahead waits for its first message. It ends by itself when the process that began it ends.
    """

    def __init__(self, module: str = MODULE) -> None:
        self._module = module
        self._ahead: list[Process] = []

    async def start_ahead(self, number: int) -> None:
        """Start so many processes for later calls of next()."""
        for _ in range(number):
            self._ahead.append(await self._start())

    async def next(self) -> Process:
        """Return a process that no other caller has: one that was started ahead, else a new one."""
        return self._ahead.pop() if self._ahead else await self._start()

    async def close(self) -> None:
        """End the processes that were started ahead for nothing."""
        while self._ahead:
            process = self._ahead.pop()
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def _start(self) -> Process:
        command = (sys.executable, "-P", "-c", _PROGRAM, _ROOT, self._module)
        return await asyncio.create_subprocess_exec(
            *command, stdin=PIPE, stdout=PIPE, limit=LONGEST, start_new_session=True
        )
