"""The processes of a measurement: one server, and a fresh client for every row."""

from __future__ import annotations

import compileall
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.meter import ask

ROOT: Final = Path(__file__).parents[1]
LONGEST: Final = 3600.0


@dataclass(frozen=True, slots=True)
class Server:
    """A running server. plain, tls: its URLs. authority: path of the certificate of its authority."""

    plain: str
    tls: str
    authority: str

    def set(self, **fields: Any) -> None:
        """Set the server's behaviour (behaviour.Behaviour), and reset its counters."""
        ask(self.plain, "PUT", "/-/settings", fields)

    def counters(self) -> dict[str, Any]:
        found: dict[str, Any] = ask(self.plain, "GET", "/-/counters")
        return found

    def environment(self, memory: int | None = None) -> dict[str, str]:
        """The environment of a client, without the user's own AWS settings. memory: MB of the function."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "AUDITOR_"))}
        return {
            **kept,
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
            "AWS_REGION": "us-east-1",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CA_BUNDLE": self.authority,
            "NO_PROXY": "127.0.0.1,localhost",
            "no_proxy": "127.0.0.1,localhost",
            **({} if memory is None else {"AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(memory)}),
        }


@contextmanager
def serving() -> Iterator[Server]:
    """Start a server in its own process. Our modules are compiled before, as an installation does it.

    Otherwise each client would compile them where PYTHONDONTWRITEBYTECODE is set: half of a small audit's CPU more.
    """
    for folder in ("auditor", "benchmarks"):
        compileall.compile_dir(ROOT / folder, quiet=1)
    command = [sys.executable, "-m", "benchmarks.server"]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield Server(**json.loads(process.stdout.readline()))
        finally:
            process.stdin.close()


@dataclass(slots=True)
class Client:
    """A process that works on one job. result() waits for its end."""

    job: Mapping[str, Any]
    process: subprocess.Popen[str]

    def result(self) -> dict[str, Any]:
        """The last line of its output, read as JSON; raises RuntimeError when the process failed."""
        out, err = self.process.communicate(timeout=LONGEST)
        if self.process.returncode:
            raise RuntimeError(f"{dict(self.job)} ended with {self.process.returncode}:\n{err[-2000:]}")
        found: dict[str, Any] = json.loads(out.splitlines()[-1])
        return found


@contextmanager
def client(server: Server, job: Mapping[str, Any], *, memory: int | None = None) -> Iterator[Client]:
    """Start a job of benchmarks.child.JOBS. memory: MB of a function whose share of a CPU it gets; None for no limit.

    It imports nothing before it is in its control group. Raises OSError where no control group can be made.
    """
    command = [sys.executable, "-m", "benchmarks.child"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with ExitStack() as stack:
        process = stack.enter_context(
            subprocess.Popen(command, cwd=ROOT, env=server.environment(memory), text=True, **pipes)  # type: ignore[call-overload]
        )
        stack.callback(_end, process)
        if memory is not None:
            from tests.system.e2e.shares import Share  # its module needs pytest

            stack.callback(Share(process.pid, memory).close)
        process.stdin.write(json.dumps(job) + "\n")
        process.stdin.flush()
        yield Client(job, process)
        _end(process)


def _end(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        process.kill()
        process.wait()


def run_client(server: Server, job: Mapping[str, Any], *, memory: int | None = None) -> dict[str, Any]:
    with client(server, job, memory=memory) as started:
        return started.result()
