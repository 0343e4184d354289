"""Match undecided objects and rules against the holes that the owner accepts. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


def accepts_object(acceptances: Sequence[Acceptance], key: str, unread: Sequence[tuple[str, str]]) -> bool:
    """Every unread fact of this object is accepted. unread: (action, code) of each."""
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
    """A rule that is undecided for the whole run, because of this action and code, is accepted."""
    return any(
        entry.prefix is None
        and entry.rule in (None, rule)
        and entry.action in (None, action)
        and entry.code in (None, code)
        for entry in acceptances
    )


@dataclass(frozen=True, slots=True)
class Acceptance:
    """A hole that the owner accepts: it is still counted, but does not raise exit code 4. None matches anything."""

    reason: str
    prefix: str | None = None
    """Of the objects' keys."""
    rule: str | None = None
    """Id of a rule that is undecided for the whole run."""
    action: str | None = None
    code: str | None = None
