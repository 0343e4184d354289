"""One execution environment: a child process under the real runtime client, and the Runtime API that it talks to.

https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final
from uuid import uuid4

from tests.system.e2e.shares import Share

ACCOUNT: Final = "123456789012"
REGION: Final = "us-east-1"
INIT_SECONDS: Final = 60.0
"""Lambda allows ten; a busy machine starts an interpreter in more."""
MOST_BYTES: Final = 6 * 1024 * 1024
"""Of an event of a synchronous invocation, and of an answer (AWS Lambda developer guide, quotas)."""

_API: Final = "/2018-06-01/runtime"


@dataclass(frozen=True, slots=True)
class Function:
    """A function as deployed. package: the unzipped one. layers: the same of its layers. timeout: seconds. memory: MB.
    variables: its environment.

    retries: of an asynchronous invocation. on_failure: the URL of the queue that its failures go to. log_format: the
    runtime client's, "JSON" or "Text".
    """

    name: str
    handler: str
    package: Path
    timeout: float = 3.0
    memory: int = 128
    variables: dict[str, str] = field(default_factory=dict)
    runtime: str = "python3.13"
    retries: int = 0
    on_failure: str | None = None
    log_format: str = "Text"
    layers: tuple[Path, ...] = ()

    @property
    def arn(self) -> str:
        return f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{self.name}"


@dataclass(frozen=True, slots=True)
class Machine:
    """What runs a function. python: the interpreter. client: the folder that awslambdaric is installed in."""

    python: Path
    client: Path


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back. error: of the header X-Amz-Function-Error; None when the handler returned."""

    payload: bytes
    error: str | None = None

    @classmethod
    def failed(cls, kind: str, message: str) -> Answer:
        return cls(json.dumps({"errorType": kind, "errorMessage": message}).encode(), "Unhandled")


@dataclass(frozen=True, slots=True)
class _Call:
    payload: bytes
    id: str = field(default_factory=lambda: str(uuid4()))
    taken: threading.Event = field(default_factory=threading.Event)
    done: Future[Answer] = field(default_factory=Future)

    def finish(self, answer: Answer) -> None:
        with suppress(InvalidStateError):  # an answer after the timeout, or a death after the answer
            self.done.set_result(answer)
        self.taken.set()


class Environment:
    """Serves one invocation after another, until its process ends; killed at the function's timeout.

    peak: MB that the process held at most, by the end of its last invocation.
    """

    def __init__(
        self, function: Function, machine: Machine, variables: dict[str, str], log: Path, *, shared: bool = False
    ) -> None:
        """shared: with no more CPU than the function's memory buys; raises OSError where that cannot be."""
        self.function = function
        self.given: SimpleQueue[_Call | None] = SimpleQueue()
        self.call: _Call | None = None
        self.init_error: Answer | None = None
        self.peak = 0
        self._server = _Server(self)
        self._log = log.open("ab")
        address = f"127.0.0.1:{self._server.server_address[1]}"
        self._child = subprocess.Popen(
            [str(machine.python), "-S", "-B", "-m", "awslambdaric", function.handler],
            cwd=function.package,
            env=variables | _own_variables(function, machine, address),
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
        )
        self._share = Share(self._child.pid, function.memory) if shared else None
        self._watching = threading.Thread(target=self._watch, daemon=True)
        self._watching.start()

    @property
    def alive(self) -> bool:
        return self._child.poll() is None

    def invoke(self, payload: bytes) -> Answer:
        """Hand the event over and wait for what becomes of it. One at a time."""
        call = self.call = _Call(payload)
        self.given.put(call)
        if not self.alive:
            self._bury()
        elif not call.taken.wait(INIT_SECONDS):
            call.finish(Answer.failed("Sandbox.Timedout", f"no event was asked for in {INIT_SECONDS:.2f} seconds"))
            self.kill()
        with suppress(TimeoutError):
            return self._weighed(call.done.result(self.function.timeout))
        message = f"{call.id} Task timed out after {self.function.timeout:.2f} seconds"
        call.finish(Answer.failed("Sandbox.Timedout", message))
        self.kill()
        return call.done.result()

    def _weighed(self, answer: Answer) -> Answer:
        """Lambda kills whoever takes more than its memory; here that is seen only at the end."""
        with suppress(OSError):  # the process is dead
            lines = Path(f"/proc/{self._child.pid}/status").read_text().splitlines()
            self.peak = next((int(line.split()[1]) // 1024 for line in lines if line.startswith("VmHWM")), self.peak)
        if self.peak <= self.function.memory:
            return answer
        self.kill()
        return Answer.failed("Runtime.OutOfMemory", f"{self.peak} MB were used")

    def kill(self) -> None:
        """By its pid, without a warning, as Lambda does."""
        self._child.kill()
        self._child.wait()

    def close(self) -> None:
        self.kill()
        self._watching.join()
        self.given.put(None)
        self._server.close()
        self._log.close()
        if self._share is not None:
            self._share.close()

    def _watch(self) -> None:
        self._child.wait()
        self._bury()

    def _bury(self) -> None:
        """The process is dead: so is the invocation that it had in hand."""
        if self.call is not None:
            message = f"RequestId: {self.call.id} Error: Runtime exited with {self._child.returncode}"
            self.call.finish(self.init_error or Answer.failed("Runtime.ExitError", message))


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, environment: Environment) -> None:
        super().__init__(("127.0.0.1", 0), _RuntimeApi)
        self.environment = environment
        self._serving = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._serving.start()

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):  # a killed process hangs up
            super().handle_error(request, client_address)

    def close(self) -> None:
        self.shutdown()
        self._serving.join()
        self.server_close()


class _RuntimeApi(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        environment = self.server.environment
        if self.path != f"{_API}/invocation/next":
            return self._answer(404)
        call = environment.given.get()
        if call is None:
            self.close_connection = True
            return None
        deadline = time.time() + environment.function.timeout
        self._answer(
            200,
            call.payload,
            {
                "Lambda-Runtime-Aws-Request-Id": call.id,
                "Lambda-Runtime-Deadline-Ms": str(int(deadline * 1000)),
                "Lambda-Runtime-Invoked-Function-Arn": environment.function.arn,
            },
        )
        call.taken.set()
        return None

    def do_POST(self) -> None:
        environment = self.server.environment
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        call = environment.call
        if self.path == f"{_API}/init/error":
            environment.init_error = Answer(body, "Unhandled")
            return self._answer(202)
        if call is None or call.id not in self.path:
            return self._answer(400)
        if self.path.endswith("/error"):
            call.finish(Answer(body, "Unhandled"))
        elif len(body) > MOST_BYTES:
            call.finish(Answer.failed("Function.ResponseSizeTooLarge", f"the answer has {len(body)} bytes"))
            return self._answer(413)
        else:
            call.finish(Answer(body))
        return self._answer(202)

    def _answer(self, status: int, body: bytes = b"{}", headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's name
        """The tests read what the function says, not this."""


def _own_variables(function: Function, machine: Machine, address: str) -> dict[str, str]:
    """What Lambda sets itself (developer guide, environment variables); the client lies behind the package."""
    return {
        "AWS_LAMBDA_RUNTIME_API": address,
        "AWS_LAMBDA_FUNCTION_NAME": function.name,
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(function.memory),
        "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
        "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
        "AWS_LAMBDA_LOG_FORMAT": function.log_format,
        "AWS_EXECUTION_ENV": f"AWS_Lambda_{function.runtime}",
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        "LAMBDA_TASK_ROOT": str(function.package),
        "_HANDLER": function.handler,
        "PYTHONPATH": ":".join(
            [str(function.package), *(f"{one}/python" for one in function.layers), str(machine.client)]
        ),
        "LANG": "en_US.UTF-8",
        "TZ": ":UTC",
        **function.variables,
    }
