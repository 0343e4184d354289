"""Decide which undecided objects and rules auditor.toml accepts, so that they do not make the exit code 4.

A hole is something that the run was to look at and could not read. The bucket's owner lists the accepted holes.
"""

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
    """An entry of auditor.toml that accepts some holes. The objects and rules of an accepted hole still count as
    undecided, but do not make the exit code 4.

    prefix, rule, action, code: a hole is accepted if it matches every one of these that is not None. An entry with a
    prefix accepts undecided objects only; an entry with a rule, undecided rules only.
    """

    reason: str
    prefix: str | None = None
    """Prefix of the keys of the accepted objects."""
    rule: str | None = None
    action: str | None = None
    code: str | None = None
