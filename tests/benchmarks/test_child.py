"""A client's process reports all of its result, however its writes to the pipe end."""

from __future__ import annotations

import fcntl
import os
import signal
import struct
import subprocess
import sys
import termios
import time
from typing import IO, Final

import pytest

from benchmarks.launch import ROOT, Client

LARGE: Final = """
from benchmarks import child

def calls(meter, *, size):
    return {"text": "a" * size}

child.JOBS["large"] = "__main__:calls"
child.main()
"""


def unread(pipe: IO[str]) -> int:
    """The number of bytes that wait in the pipe."""
    found: int = struct.unpack("i", fcntl.ioctl(pipe.fileno(), termios.FIONREAD, bytes(4)))[0]
    return found


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_process_that_is_stopped_within_a_write_reports_its_whole_result(unbuffered: str) -> None:
    size = 1_000_000  # a pipe holds less
    with subprocess.Popen(
        [sys.executable, "-c", LARGE],
        cwd=ROOT,
        env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f'{{"job": "large", "size": {size}}}\n')
        process.stdin.flush()
        waiting = -1
        while not waiting == unread(process.stdout) > 0:  # until the write waits for a reader
            waiting = unread(process.stdout)
            time.sleep(0.05)
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
        process.send_signal(signal.SIGCONT)
        assert len(Client({"job": "large"}, process).result()["text"]) == size
