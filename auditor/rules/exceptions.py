"""Decide which undecided objects and rules are accepted: the bucket's owner lists these holes in auditor.toml."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


def accepts_object(acceptances: Sequence[Acceptance], key: str, unread: Sequence[tuple[str, str]]) -> bool:
    """True if auditor.toml accepts every fact of the object that could not be read. False if `unread` is empty. unread:
    for each such fact, the API operation that failed and its error code.
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
    """True if auditor.toml accepts that the rule is undecided because `action` failed with `code`."""
    return any(
        entry.prefix is None
        and entry.rule in (None, rule)
        and entry.action in (None, action)
        and entry.code in (None, code)
        for entry in acceptances
    )


@dataclass(frozen=True, slots=True)
class Acceptance:
    """A hole (something unread) that auditor.toml accepts: its objects or rules still count as undecided, but do not
    make the exit code 4. prefix, rule, action, code: the hole has to match each of them; None matches any hole.
    """

    reason: str
    prefix: str | None = None
    """Prefix of the objects' keys."""
    rule: str | None = None
    action: str | None = None
    code: str | None = None
