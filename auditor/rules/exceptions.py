"""Match undecided objects and rules against the holes that the owner accepts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


def accepts_object(acceptances: Sequence[Acceptance], key: str, unread: Sequence[tuple[str, str]]) -> bool:
    """True if every unread fact of the object is accepted. unread: the action and code of each unread fact."""
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
    """True if it is accepted that this rule is undecided for the whole run, because of this action and code."""
    return any(
        entry.prefix is None
        and entry.rule in (None, rule)
        and entry.action in (None, action)
        and entry.code in (None, code)
        for entry in acceptances
    )


@dataclass(frozen=True, slots=True)
class Acceptance:
    """A hole that the owner accepts. It is still counted, but does not cause exit code 4. None matches anything."""

    reason: str
    prefix: str | None = None
    """Prefix of the objects' keys."""
    rule: str | None = None
    """ID of a rule that is undecided for the whole run."""
    action: str | None = None
    code: str | None = None
