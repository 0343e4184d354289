"""The state machine's walk over the steps of the audit function, in this process: begin, each range, conclude."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from tests.support.schemas import valid

Handle = Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any]]]


async def step(handle: Handle, event: Mapping[str, Any]) -> dict[str, Any]:
    """One step; the event and the answer are JSON, and valid by their schemas."""
    event = json.loads(json.dumps(event))
    answer: dict[str, Any] = json.loads(json.dumps(await handle(event)))
    valid("audit-event", event)
    valid("audit-step-result", answer)
    return answer


async def begin(handle: Handle, event: Mapping[str, Any]) -> dict[str, Any]:
    """The answer of the last step that begins runs. event: the machine's input."""
    while True:
        answer = await step(handle, {"action": "begin", "event": event})
        if answer["next"] != "begin":
            return answer
        event = answer["event"]


def pairs_of(answer: Mapping[str, Any]) -> list[dict[str, str]]:
    """The ranges in an answer of begin."""
    return list(answer["pairs"])


async def audit_range(handle: Handle, begun: Mapping[str, Any], pair: Mapping[str, str]) -> list[dict[str, Any]]:
    """The answers of the invocations until a range has ended."""
    answers: list[dict[str, Any]] = []
    fruitless = 0
    while not answers or answers[-1]["again"]:
        event = {"action": "range", "event": begun["event"], "pair": pair, "at_once": begun["at_once"]}
        answers.append(await step(handle, event | {"fruitless": fruitless}))
        fruitless = answers[-1]["fruitless"]
    return answers


async def conclude(handle: Handle, begun: Mapping[str, Any]) -> dict[str, Any]:
    """The answer of the last step that concludes."""
    while True:
        answer = await step(handle, {"action": "conclude", "event": begun["event"]})
        if answer["next"] != "conclude":
            return answer


async def run_machine(handle: Handle, event: Mapping[str, Any]) -> dict[str, Any]:
    """The answer of the last step of an execution. A start that waits is not waited for."""
    begun = await begin(handle, event)
    for pair in pairs_of(begun):
        await audit_range(handle, begun, pair)
    return await conclude(handle, begun)
