"""Match undecided objects and rules against the holes that the owner accepts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


def accepts_object(acceptances: Sequence[Acceptance], key: str, unread: Sequence[tuple[str, str]]) -> bool:
    """True if every fact of the object that could not be read is accepted; False if `unread` is empty.

    unread: for each such fact, the action that failed and its error code.
    """
    return bool(unread) and all(
        any(
            entry.rule is None
            and key.startswith(entry.prefix or "")
            and entry.action in (None, action)
            and entry.code in (None, code)
            for entry in acceptances
        )
        for action, code in unread
    )


def accepts_rule(acceptances: Sequence[Acceptance], rule: str, action: str, code: str) -> bool:
    """True if the rule may be undecided for the whole run because `action` failed with the error `code`."""
    return any(
        entry.prefix is None
        and entry.rule in (None, rule)
        and entry.action in (None, action)
        and entry.code in (None, code)
        for entry in acceptances
    )


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Undecided objects or rules that are accepted. They are counted, but cause no exit code 4. None matches any."""

    reason: str
    prefix: str | None = None
    """Prefix of the objects' keys."""
    rule: str | None = None
    action: str | None = None
    code: str | None = None
