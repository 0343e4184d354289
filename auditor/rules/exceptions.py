"""Holes that the owner accepts: which undecided objects and rules they cover. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


def accepts_object(acceptances: Sequence[Acceptance], key: str, unread: Sequence[tuple[str, str]]) -> bool:
    """Every unread fact, as (action, code), of this object is accepted."""
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
    """A rule that is undecided for the whole run is accepted."""
    return any(
        entry.prefix is None
        and entry.rule in (None, rule)
        and entry.action in (None, action)
        and entry.code in (None, code)
        for entry in acceptances
    )


@dataclass(frozen=True, slots=True)
class Acceptance:
    """A hole that the owner accepts: it stays counted and does not raise exit code 4.

    prefix: objects whose key begins so. rule: a rule left undecided for the whole run. action, code: only holes of
    this kind. None matches anything. reason: why it is accepted; it is required.
    """

    reason: str
    prefix: str | None = None
    rule: str | None = None
    action: str | None = None
    code: str | None = None
