"""A local Lambda: the Invoke API on 127.0.0.1, and a process for each invocation that runs at the same time."""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import boto3

from tests.system.e2e.environment import MOST_BYTES, REGION, Answer, Environment, Function, Machine
from tools.local_aws.invoke_api import InvokeApi, NotInvokedError

MOST_EVENT_BYTES: Final = 256 * 1024
"""Of an asynchronous invocation."""

_AT_ONCE: Final = 10
_CREDENTIALS: Final = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing"}


@dataclass(frozen=True, slots=True)
class Invoked:
    """One invocation and what became of it."""

    function: str
    event: Any
    answer: Answer


class LocalLambda:
    """A context manager. endpoint: where every other service is. shared: each with no more CPU than its memory buys.

    invoked: what ran, in the order of the ends; failed: the asynchronous ones that failed, each with its last answer,
    after the retries that its function has. doom: for an event, the seconds after which who works on it is killed; None
    for nobody. They go to its queue for failures, where it has one. Logs go to `folder`, a
    file for each environment.
    """

    def __init__(
        self,
        functions: Iterable[Function],
        machine: Machine,
        folder: Path,
        *,
        endpoint: str | None = None,
        shared: bool = False,
    ) -> None:
        self.invoked: list[Invoked] = []
        self.failed: list[Invoked] = []
        self._functions = {function.name: function for function in functions}
        self._machine = machine
        self._folder = folder
        self._endpoint = endpoint
        self._shared = shared
        self.doom: Callable[[bytes], float | None] = lambda payload: None
        self._free = threading.Semaphore(_AT_ONCE)
        self._lock = threading.Lock()
        self._environments: list[Environment] = []
        self._idle: dict[str, list[Environment]] = defaultdict(list)
        self._running: list[Future[None]] = []
        self._threads = ThreadPoolExecutor(_AT_ONCE)
        self._queues = boto3.Session("testing", "testing", region_name=REGION).client("sqs", endpoint_url=endpoint)
        self._api = InvokeApi(self._asked)

    @property
    def url(self) -> str:
        return self._api.url

    def __enter__(self) -> LocalLambda:
        self._api.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        self._api.__exit__(*exc)
        for environment in self._environments:
            environment.close()
        self._threads.shutdown()

    def invoke(self, name: str, event: Any) -> Answer:
        """Synchronously. Raises NotInvokedError."""
        payload = json.dumps(event).encode()
        return self.run(self.function(name, payload, MOST_BYTES), payload)

    def _asked(self, name: str, payload: bytes) -> tuple[bytes, str | None]:
        """By the Invoke API, at which the state machine invokes them."""
        answer = self.run(self.function(name, payload, MOST_BYTES), payload)
        return answer.payload, answer.error

    def settle(self) -> None:
        """Wait for the asynchronous invocations."""
        while self._running:
            self._running.pop(0).result()

    @property
    def busy(self) -> bool:
        """True while an invocation runs."""
        return any(one.alive and one.call is not None and not one.call.done.done() for one in self._environments)

    def kill(self, text: str) -> None:
        """At once, whoever works on an event with this text in it: no farewell, as when memory runs out."""
        for environment in self._environments:
            if environment.alive and environment.call is not None and text.encode() in environment.call.payload:
                environment.kill()

    def peaks(self) -> list[tuple[str, int]]:
        """The function of each environment, and the MB that it held at most."""
        return [(environment.function.name, environment.peak) for environment in self._environments]

    def logs(self, function: str = "") -> str:
        """What a function printed, or all did, all environments one after another."""
        return "".join(path.read_text() for path in sorted(self._folder.glob(f"*{function}.log")))

    def function(self, name: str, payload: bytes, limit: int) -> Function:
        """name: also an ARN. Raises NotInvokedError for what the Invoke API refuses."""
        function = self._functions.get(name.rpartition(":")[2])
        if function is None:
            raise NotInvokedError(404, "ResourceNotFoundException")
        if len(payload) > limit:
            raise NotInvokedError(413, "RequestTooLargeException")
        return function

    def invoke_later(self, name: str, event: Any) -> None:
        """Asynchronously; see settle(). Raises NotInvokedError."""
        payload = json.dumps(event).encode()
        self.start(self.function(name, payload, MOST_EVENT_BYTES), payload)

    def start(self, function: Function, payload: bytes) -> None:
        self._running.append(self._threads.submit(self._run_alone, function, payload))

    def _run_alone(self, function: Function, payload: bytes) -> None:
        for _ in range(1 + function.retries):
            answer = self.run(function, payload, wait=True)
            if answer.error is None:
                return
        failed = Invoked(function.name, json.loads(payload), answer)
        self.failed.append(failed)
        if function.on_failure is not None:
            body = json.dumps(_letter(function, failed))
            self._queues.send_message(QueueUrl=function.on_failure, MessageBody=body)

    def run(self, function: Function, payload: bytes, *, wait: bool = False) -> Answer:
        """wait: for one of the others to end, rather than raise NotInvokedError."""
        if not self._free.acquire(blocking=wait):
            raise NotInvokedError(429, "TooManyRequestsException")
        try:
            environment = self._environment(function)
            doom = None
            if (seconds := self.doom(payload)) is not None:
                doom = threading.Timer(seconds, environment.kill)
                doom.start()
            answer = environment.invoke(payload)
            if doom is not None:
                doom.cancel()
            with self._lock:
                if environment.alive:
                    self._idle[function.name].append(environment)
                self.invoked.append(Invoked(function.name, json.loads(payload), answer))
            return answer
        finally:
            self._free.release()

    def _environment(self, function: Function) -> Environment:
        with self._lock:
            while self._idle[function.name]:
                environment = self._idle[function.name].pop()
                if environment.alive:
                    return environment
            variables = {**_CREDENTIALS, "NO_PROXY": "127.0.0.1"}
            if self._endpoint is not None:
                variables["AWS_ENDPOINT_URL"] = self._endpoint
            log = self._folder / f"{len(self._environments):03}-{function.name}.log"
            environment = Environment(function, self._machine, variables, log, shared=self._shared)
            self._environments.append(environment)
            return environment


def _letter(function: Function, failed: Invoked) -> dict[str, Any]:
    """What Lambda tells a destination (developer guide, "Capturing records of Lambda asynchronous invocations")."""
    return {
        "version": "1.0",
        "requestContext": {
            "functionArn": f"{function.arn}:$LATEST",
            "condition": "RetriesExhausted",
            "approximateInvokeCount": 1 + function.retries,
        },
        "requestPayload": failed.event,
        "responseContext": {"statusCode": 200, "executedVersion": "$LATEST", "functionError": failed.answer.error},
        "responsePayload": json.loads(failed.answer.payload),
    }
