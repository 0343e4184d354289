"""The local Lambda itself, with handlers of a few lines under the real runtime client."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.system.e2e.environment import MOST_BYTES, Answer, Function, Machine
from tests.system.e2e.runtime import MOST_EVENT_BYTES, LocalLambda, NotInvokedError
from tests.system.e2e.shares import needs_groups

SOURCE = """
import os, time

def echo(event, context):
    return {"event": event, "arn": context.invoked_function_arn, "left": context.get_remaining_time_in_millis(),
            "memory": context.memory_limit_in_mb, "pid": os.getpid(), "variable": os.environ.get("VARIABLE")}

def fail(event, context):
    raise ValueError("as told")

def sleep(event, context):
    time.sleep(60)

def die(event, context):
    os._exit(3)

def long(event, context):
    return "x" * event

def hoard(event, context):
    return len(bytearray(event * 1024 * 1024))

def spin(event, context):
    until = time.monotonic() + event
    while time.monotonic() < until:
        pass
    return time.process_time()

async def coroutine(event, context):
    return {}
"""

Made = Callable[..., LocalLambda]


@pytest.fixture
def lambdas(machine: Machine, tmp_path: Path) -> Iterator[Made]:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "simple.py").write_text(SOURCE)
    (tmp_path / "logs").mkdir()
    with ExitStack() as stack:

        def make(handler: str, *, concurrency: int = 10, shared: bool = False, **more: Any) -> LocalLambda:
            function = Function("simple", handler, tmp_path / "package", **more)
            return stack.enter_context(
                LocalLambda([function], machine, tmp_path / "logs", concurrency=concurrency, shared=shared)
            )

        yield make


def told(answer: Answer) -> Any:
    return json.loads(answer.payload)


def post(local: LocalLambda, body: bytes, kind: str = "RequestResponse", name: str = "simple") -> tuple[int, Any]:
    url = f"{local.url}/2015-03-31/functions/{name}/invocations"
    request = urllib.request.Request(url, body, {"X-Amz-Invocation-Type": kind})
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, answer.headers["X-Amz-Function-Error"]
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers["x-amzn-ErrorType"]


def test_a_handler_gets_its_event_its_context_and_its_variables(lambdas: Made) -> None:
    answer = lambdas("simple.echo", timeout=7.0, memory=512, variables={"VARIABLE": "value"}).invoke("simple", {"a": 1})
    assert answer.error is None
    found = told(answer)
    assert found["event"] == {"a": 1}
    assert found["arn"].endswith(":function:simple")
    assert 0 < found["left"] <= 7000
    assert (found["memory"], found["variable"]) == ("512", "value")


def test_an_environment_serves_one_invocation_after_another(lambdas: Made) -> None:
    local = lambdas("simple.echo")
    assert told(local.invoke("simple", 1))["pid"] == told(local.invoke("simple", 2))["pid"]
    assert local.started == 1


def test_an_error_is_told_with_its_type_and_the_environment_lives_on(lambdas: Made) -> None:
    local = lambdas("simple.fail")
    for _ in range(2):
        answer = local.invoke("simple", {})
        assert answer.error == "Unhandled"
        assert told(answer)["errorType"] == "ValueError"
        assert told(answer)["errorMessage"] == "as told"
    assert local.started == 1


def test_a_process_is_killed_at_the_timeout_and_the_next_invocation_gets_another(lambdas: Made) -> None:
    local = lambdas("simple.sleep", timeout=0.5)
    for _ in range(2):
        answer = local.invoke("simple", {})
        assert answer.error == "Unhandled"
        assert "Task timed out after 0.50 seconds" in told(answer)["errorMessage"]
    assert local.started == 2


def test_more_than_its_memory_is_an_error(lambdas: Made) -> None:
    local = lambdas("simple.hoard", memory=128)
    assert local.invoke("simple", 20).error is None
    assert told(local.invoke("simple", 150))["errorType"] == "Runtime.OutOfMemory"
    assert local.invoke("simple", 20).error is None
    assert local.started == 2


@needs_groups
def test_a_function_gets_the_cpu_that_its_memory_buys(lambdas: Made) -> None:
    answer = lambdas("simple.spin", memory=177, timeout=30.0, shared=True).invoke("simple", 3.0)
    assert 0 < told(answer) < 1.5


def test_a_process_that_dies_is_an_error(lambdas: Made) -> None:
    assert told(lambdas("simple.die").invoke("simple", {}))["errorType"] == "Runtime.ExitError"


def test_a_handler_that_is_not_there_is_an_error_of_the_start(lambdas: Made) -> None:
    assert told(lambdas("simple.missing").invoke("simple", {}))["errorType"] == "Runtime.HandlerNotFound"
    assert "none" in told(lambdas("none.handler").invoke("simple", {}))["errorMessage"]


def test_a_coroutine_is_no_handler(lambdas: Made) -> None:
    assert told(lambdas("simple.coroutine").invoke("simple", {}))["errorType"] == "Runtime.MarshalError"


def test_too_long_an_answer_is_an_error(lambdas: Made) -> None:
    local = lambdas("simple.long")
    assert local.invoke("simple", MOST_BYTES - 2).error is None
    assert told(local.invoke("simple", MOST_BYTES))["errorType"] == "Function.ResponseSizeTooLarge"


def test_the_invoke_api_answers_as_lambdas_does(lambdas: Made) -> None:
    local = lambdas("simple.fail")
    arn = "arn%3Aaws%3Alambda%3Aus-east-1%3A123456789012%3Afunction%3Asimple"
    assert post(local, b"{}", name=arn) == (200, "Unhandled")
    assert post(local, b"{}", name="other") == (404, "ResourceNotFoundException")
    assert post(local, bytes(MOST_EVENT_BYTES + 1), kind="Event") == (413, "RequestTooLargeException")
    assert local.failed == []


def test_an_asynchronous_invocation_is_repeated_as_often_as_its_function_says(lambdas: Made) -> None:
    local = lambdas("simple.fail", retries=2)
    assert post(local, b"{}", kind="Event") == (202, None)
    local.settle()
    assert len(local.invoked) == 3
    assert len(local.failed) == 1


def test_an_asynchronous_invocation_that_fails_is_kept_and_not_repeated(lambdas: Made) -> None:
    local = lambdas("simple.fail")
    assert post(local, b'{"a": 1}', kind="Event") == (202, None)
    local.settle()
    assert [one.event for one in local.failed] == [{"a": 1}]
    assert len(local.invoked) == 1


def test_more_than_the_concurrency_is_throttled(lambdas: Made) -> None:
    local = lambdas("simple.sleep", concurrency=1, timeout=1.0)
    assert post(local, b"{}", kind="Event") == (202, None)
    while not local.started:
        time.sleep(0.01)
    with pytest.raises(NotInvokedError, match="TooManyRequests"):
        local.invoke("simple", {})
    local.settle()
