"""Read the events with which a state machine has a large target audited, step by step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Self

from msgspec import Struct

from auditor.errors import UsageError

ACTIONS: Final = ("plan", "range", "summarize")
_MEMBERS: Final = frozenset({"action", "event", "range", "claim", "at_once", "fruitless", "attempt"})


class MapStep(Struct, frozen=True, kw_only=True):
    """An event of the state machine.

    event: the event of the audit function. range_id: the range to audit; None for the other actions. claim: the name
    under which the plan has claimed the bucket; None before the plan. at_once: largest number of ranges audited
    at once. fruitless: number of invocations in a row, before this one, that made no progress in the range. attempt:
    name of the range's execution, and how often it was redriven; "" if the definition of the state machine is of a
    version that did not tell.
    """

    action: str
    event: Mapping[str, Any]
    range_id: str | None
    claim: str | None
    at_once: int
    fruitless: int
    attempt: str

    @classmethod
    def of(cls, event: Mapping[str, Any]) -> Self:
        """Read an event of the state machine. Raises UsageError if it is wrong."""
        action, inner = event.get("action"), event.get("event")
        if action not in ACTIONS:
            raise UsageError(f"the event's action is {str(action)[:100]!r}: give {', '.join(ACTIONS)}")
        if unknown := sorted(map(str, event.keys() - _MEMBERS)):
            raise UsageError(f"the event's field {unknown[0][:100]!r} is not allowed together with an action")
        if not isinstance(inner, Mapping):
            raise UsageError(
                'the event of an action lacks the event of its audit: {"action": .., "event": {"bucket": ..}}'
            )
        texts = (event.get("range"), event.get("claim"), event.get("attempt"))
        numbers = (event.get("at_once", 1), event.get("fruitless", 0))
        if any(one is not None and not isinstance(one, str) for one in texts):
            raise UsageError("the event's range, claim or attempt is not a string")
        if any(type(one) is not int or one < 0 for one in numbers) or numbers[0] < 1:
            raise UsageError("the event's at_once or fruitless is not a whole number")
        if action != "plan" and not isinstance(inner.get("run"), str):
            raise UsageError(f"the event of the action {action} names no run: the action plan gives it one")
        if (action == "range") != isinstance(texts[0], str):
            raise UsageError("the event's range belongs to the action range alone, which needs it")
        return cls(
            action=action,
            event=inner,
            range_id=texts[0],
            claim=texts[1],
            at_once=numbers[0],
            fruitless=numbers[1],
            attempt=texts[2] or "",
        )


def is_step(event: object) -> bool:
    """True for an event that a state machine sends."""
    return isinstance(event, Mapping) and "action" in event
