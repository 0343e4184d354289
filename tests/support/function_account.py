"""The surroundings of a Lambda function: they record the executions, alerts, events and metrics."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from auditor.config.channels import Channels
from auditor.lambdas.invocation_frame import FunctionContext
from tests.support.deadline import Deadline


@dataclass
class Account:
    """A function's context, and the state machine that it starts. events: the inputs of the executions. deadline: comes
    when the test says so. elapsed: seconds since the invocation began.
    """

    seconds: float = 900.0
    elapsed: float = 0.0
    events: list[Mapping[str, Any]] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)
    finished: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)
    lines: list[dict[str, Any]] = field(default_factory=list)
    deadline: Deadline = field(default_factory=Deadline)

    async def start(self, name: str, event: Mapping[str, Any]) -> str:
        self.events.append(json.loads(json.dumps(event)))
        return f"arn:aws:states:us-east-1:123456789012:execution:audit:{name}"

    async def publish(self, subject: str, message: str) -> None:
        self.messages.append(f"{subject}\n{message}")

    async def put(self, source: str, kind: str, detail: Mapping[str, Any]) -> None:
        self.finished.append((kind, json.loads(json.dumps(detail))))

    def around(self, *, machine: bool = True, request: str | None = None) -> FunctionContext:
        return FunctionContext(
            seconds_left=self.seconds,
            machine=self if machine else None,
            channels=Channels(topic=self, bus=self),
            emit=lambda line: self.lines.append(json.loads(line)),
            request=request,
            stopping=self.deadline,
            began=time.monotonic() - self.elapsed,
        )

    def metric(self, name: str) -> float:
        return float(sum(line.get(name, 0) for line in self.lines))
