"""Run the built package's handlers, each invocation in a process of its own, with the package alone on its path."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import threading
import time
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, Self
from uuid import uuid4

import boto3
from botocore.exceptions import ClientError

from tools import ROOT
from tools.interpreters import find
from tools.local_aws.invoke_api import NotInvokedError

PACKAGE: Final = ROOT / ".build" / "function-local.zip"
_CREDENTIALS: Final = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing"}
_UNTOLD: Final = dict.fromkeys(("AUDITOR_TOPIC", "AUDITOR_CHAT_TOPIC", "AUDITOR_EVENT_BUS"), "")
_AT_ONCE: Final = 4

_interpreter = cache(find)
_RUN: Final = """
import importlib, json, sys, time
module, _, name = sys.argv[1].rpartition(".")
end = time.monotonic() + float(sys.argv[2])
class Context:
    invoked_function_arn = sys.argv[3]
    aws_request_id = sys.argv[4]
    def get_remaining_time_in_millis(self):
        return int(1000 * max(0.0, end - time.monotonic()))
try:
    answer = getattr(importlib.import_module(module), name)(json.load(sys.stdin), Context())
except Exception as error:
    print()
    print(json.dumps({"errorType": type(error).__name__, "errorMessage": str(error)}))
    raise
print()
print(json.dumps(answer))
"""


class NotRunError(Exception):
    """A handler could not be run."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of an invocation. answer: of the handler, or the error as Lambda tells it. failed: True for an error.

    log: what it printed. words: the error in words; "" without one.
    """

    answer: Any
    log: str = ""
    words: str = ""

    @property
    def failed(self) -> bool:
        return bool(self.words)


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployed:
    """A function as it is deployed. handler: such as handlers.audit.handler. timeout: in seconds. python: a version."""

    name: str
    arn: str
    handler: str
    timeout: int
    python: str
    variables: Mapping[str, str]

    @classmethod
    def of(cls, client: Any, name: str) -> Deployed:
        """client: of Lambda. name: also an ARN. Raises ClientError if it is not deployed."""
        found = client.get_function_configuration(FunctionName=name)
        return cls(
            name=found["FunctionName"],
            arn=found["FunctionArn"],
            handler=found["Handler"],
            timeout=found["Timeout"],
            python=found["Runtime"].removeprefix("python"),
            variables={**found["Environment"]["Variables"], **_UNTOLD},
        )


class Functions:
    """A context manager: at its end the invocations that still run are killed.

    The package is unzipped once, and again after it was built anew.
    """

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[str]] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        with self._lock:
            for child in self._running:
                child.kill()
        self._folder.cleanup()

    def run(self, function: Deployed, event: Any, environ: Mapping[str, str]) -> Ended:
        """Invoke a function. environ: variables beside the function's own. Raises NotRunError."""
        interpreter = _interpreter(function.python)
        if interpreter is None:
            raise NotRunError(f"the functions run on python{function.python}, which is not installed here")
        folder = str(self._package())
        arguments = [function.handler, str(function.timeout), function.arn, str(uuid4())]
        child = subprocess.Popen(  # noqa: S603 - our own arguments
            [str(interpreter), "-S", "-B", "-c", _RUN, *arguments],
            cwd=folder,
            env={**environ, **function.variables, "PYTHONPATH": folder},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        with self._lock:
            self._running.add(child)
        try:
            output, errors = child.communicate(json.dumps(event), function.timeout)
        except subprocess.TimeoutExpired:
            child.kill()
            output, errors = child.communicate()
            return _failure("Sandbox.Timedout", f"Task timed out after {function.timeout} seconds", output + errors)
        finally:
            with self._lock:
                self._running.discard(child)
        return _ended(child.returncode, output, errors)

    def _package(self) -> Path:
        """Return the folder of the unzipped package."""
        if not PACKAGE.exists():
            raise NotRunError(f"{PACKAGE.relative_to(ROOT)} is not built: make deploy STAGE=local, or make package")
        found = PACKAGE.stat()
        folder = Path(self._folder.name) / f"{found.st_mtime_ns}-{found.st_size}"
        with self._lock:
            if not folder.exists():
                with zipfile.ZipFile(PACKAGE) as archive:
                    archive.extractall(folder)
        return folder


def _failure(kind: str, words: str, log: str) -> Ended:
    return Ended({"errorType": kind, "errorMessage": words}, log, words)


def _ended(code: int, output: str, errors: str) -> Ended:
    printed = output.splitlines()
    if code == 0:
        return Ended(json.loads(printed[-1]), "\n".join([*printed[:-1], errors]))
    *before, last = errors.strip().splitlines() or ["it ended without a word"]
    if code != 1 or not printed:  # killed
        return _failure("Runtime.ExitError", f"Runtime exited with {code}: {last}", "\n".join([*printed, *before]))
    if (sentence := last.removeprefix("auditor.errors.")) != last:  # the place of the error says nothing more
        last, before = sentence.partition(": ")[2], [line for line in before if line.startswith("{")]
    return Ended(json.loads(printed[-1]), "\n".join([*printed[:-1], *before]), last)


class LocalFunctions:
    """The functions deployed to `make local-aws`, for its Invoke API. url: the server's. At most four run at once."""

    def __init__(self, functions: Functions, url: str) -> None:
        self._functions = functions
        self._url = url
        self._free = threading.Semaphore(_AT_ONCE)

    def invoke(self, name: str, payload: bytes) -> tuple[bytes, str | None]:
        """Answer the Invoke API. Raises NotInvokedError."""
        session = boto3.Session("testing", "testing", region_name="us-east-1")
        try:
            function = Deployed.of(session.client("lambda", endpoint_url=self._url), name)
        except ClientError as error:
            raise NotInvokedError(404, "ResourceNotFoundException") from error
        with self._free:
            try:
                done = self._functions.run(function, json.loads(payload), self._environ())
            except NotRunError as error:
                done = _failure("NotRunError", str(error), "")
        keep_log(session.client("logs", endpoint_url=self._url), function.name, done.log)
        return json.dumps(done.answer).encode(), "Unhandled" if done.failed else None

    def _environ(self) -> dict[str, str]:
        own = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "AUDITOR_"))}
        regions = dict.fromkeys(("AWS_REGION", "AWS_DEFAULT_REGION"), "us-east-1")
        return own | _CREDENTIALS | regions | {"AWS_ENDPOINT_URL": self._url, "NO_PROXY": "127.0.0.1"}


def keep_log(logs: Any, function: str, log: str) -> None:
    """Write the log to CloudWatch Logs on this machine's server, as Lambda would have, so that `make logs` finds it.

    logs: a client.
    """
    group, stream = f"/aws/lambda/{function}", f"{time.strftime('%Y/%m/%d')}/[$LATEST]{uuid4().hex}"
    now = int(time.time() * 1000)
    logs.create_log_stream(logGroupName=group, logStreamName=stream)
    if events := [{"timestamp": now, "message": line} for line in log.splitlines() if line]:
        logs.put_log_events(logGroupName=group, logStreamName=stream, logEvents=events)
