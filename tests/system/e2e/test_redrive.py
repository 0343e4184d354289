"""The local state machines redrive as Step Functions does: what succeeded is kept, and each failed child goes on."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import boto3
import pytest
from botocore.exceptions import ClientError

from tests.system.e2e.conftest import server_command
from tests.system.e2e.deployment import serving
from tests.system.e2e.environment import REGION

ITEMS: Final = ("a", "b", "c", "d", "e")
AT_ONCE: Final = 3


def task(name: str, following: str | None) -> dict[str, Any]:
    """A step that invokes the function with its name and its input."""
    return {
        "Type": "Task",
        "Resource": "arn:aws:states:::lambda:invoke",
        "Parameters": {"FunctionName": name, "Payload.$": "$"},
        "OutputPath": "$.Payload",
        **({"End": True} if following is None else {"Next": following}),
    }


MACHINE: Final = {
    "StartAt": "First",
    "States": {
        "First": task("first", "Each"),
        "Each": {
            "Type": "Map",
            "ItemsPath": "$.items",
            "MaxConcurrency": AT_ONCE,
            "ItemProcessor": {
                "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
                "StartAt": "One",
                "States": {"One": task("one", "Two"), "Two": task("two", None)},
            },
            "ResultPath": "$.results",
            "Next": "Last",
        },
        "Last": task("last", None),
    },
}


class Functions(ThreadingHTTPServer):
    """The Invoke API of functions that return their input. calls: function and input of each invocation.

    failing: the invocations that fail, by function and input; they are taken out as they fail. slow: invocations that
    are answered once their event is set.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Invoke)
        self.calls: list[tuple[str, Any]] = []
        self.failing: list[tuple[str, Any]] = []
        self.slow: dict[tuple[str, Any], threading.Event] = {}


class _Invoke(BaseHTTPRequestHandler):
    server: Functions

    def do_POST(self) -> None:
        event = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        call = (self.path.split("/")[3], event if isinstance(event, str) else None)
        self.server.calls.append(call)
        if call in self.server.slow:
            self.server.slow[call].wait(30)
        failed = call in self.server.failing
        body = json.dumps({"errorType": "Broken", "errorMessage": "as told"} if failed else event).encode()
        if failed:
            self.server.failing.remove(call)
        self.send_response(200)
        if failed:
            self.send_header("X-Amz-Function-Error", "Unhandled")
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's name
        """The tests read the calls."""


@contextmanager
def functions() -> Iterator[Functions]:
    with Functions() as made:
        threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        yield made
        made.shutdown()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, Path]]:
    """A client of Step Functions, and the file with the address of the Invoke API."""
    command = server_command()
    if command is None:
        pytest.skip("moto's server is not installed: make test-e2e installs it")
    folder = tmp_path_factory.mktemp("redrive")
    with serving(command, folder / "server.log", folder / "invoke.url") as url:
        session = boto3.Session("testing", "testing", region_name=REGION)
        yield session.client("stepfunctions", endpoint_url=url), folder / "invoke.url"


def ended(client: Any, execution: str) -> dict[str, Any]:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        found: dict[str, Any] = client.describe_execution(executionArn=execution)
        if found["status"] != "RUNNING":
            return found
        time.sleep(0.05)
    raise TimeoutError("the execution does not end")


def begun(client: Any, name: str) -> str:
    role = "arn:aws:iam::123456789012:role/machine"
    machine = client.create_state_machine(name=name, definition=json.dumps(MACHINE), roleArn=role)
    event = json.dumps({"items": ITEMS})
    arn: str = client.start_execution(stateMachineArn=machine["stateMachineArn"], name=name, input=event)[
        "executionArn"
    ]
    return arn


def test_only_what_did_not_succeed_runs_again(server: tuple[Any, Path]) -> None:
    client, address = server
    with functions() as local:
        address.write_text(f"http://127.0.0.1:{local.server_address[1]}")
        local.failing = [("two", "c"), ("two", "c")]
        at_work = local.slow["one", "b"] = threading.Event()
        failing = local.slow["two", "c"] = threading.Event()
        execution = begun(client, "kept")
        while ("two", "e") not in local.calls:  # the third child at once does a, d and e
            time.sleep(0.02)
        failing.set()
        failed = ended(client, execution)
        assert (failed["status"], failed["error"]) == ("FAILED", "States.ExceedToleratedFailureThreshold")
        before = Counter(local.calls)
        assert before["two", "c"] == 1
        assert before["one", "b"] == 1
        assert before["two", "b"] == 0, "it was aborted while its first step was at work"
        assert before["last", None] == 0
        at_work.set()
        client.redrive_execution(executionArn=execution)
        assert ended(client, execution)["status"] == "FAILED"
        client.redrive_execution(executionArn=execution)
        done = ended(client, execution)
        assert done["status"] == "SUCCEEDED", done
        assert json.loads(done["output"])["results"] == list(ITEMS), "the results are those of all attempts, in order"
        calls = Counter(local.calls)
        assert calls["first", None] == calls["last", None] == 1
        assert all(calls[step, item] == 1 for step in ("one", "two") for item in "ad"), "a child that succeeded is kept"
        assert (calls["one", "c"], calls["two", "c"]) == (1, 3), "a child goes on from the step that failed"
        assert calls["one", "b"] >= 2, "the step that was cut off is taken again, with its input"
        with pytest.raises(ClientError, match="ExecutionNotRedrivable"):
            client.redrive_execution(executionArn=execution)


def test_an_execution_that_failed_before_its_map_goes_on_with_all_of_it(server: tuple[Any, Path]) -> None:
    client, address = server
    with functions() as local:
        address.write_text(f"http://127.0.0.1:{local.server_address[1]}")
        local.failing = [("first", None)]
        execution = begun(client, "early")
        assert ended(client, execution)["status"] == "FAILED"
        client.redrive_execution(executionArn=execution)
        assert ended(client, execution)["status"] == "SUCCEEDED"
        each: dict[tuple[str, Any], int] = {(step, item): 1 for step in ("one", "two") for item in ITEMS}
        assert Counter(local.calls) == each | {("first", None): 2, ("last", None): 1}
