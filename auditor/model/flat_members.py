"""The flat members of an object's line: texts and booleans that repeat its nested members for SQL.

A query engine that knows the nested members only by examples reads `{"unread": ..}` as an ACL without grants. No flat
member has a value for a fact that was not read: it is null, or it says so.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from auditor.model.access import Verdict
from auditor.model.object import PUBLIC_GROUPS, Acl, Head, PartialHead, Skipped, Unread

NAMES: Final = ("prefix1", "acl_state", "public_grant", "head_state", "public")
"""The flat members, in the order of the line."""


class FactState(StrEnum):
    """The state of a fact of one object: it was read, could not be read, or was not asked for. PARTIAL: a HEAD of which
    some members were read; the line leaves the others out.
    """

    READ = "read"
    PARTIAL = "partial"
    UNREAD = "unread"
    SKIPPED = "skipped"


def state_of(fact: Acl | Head | Unread | Skipped) -> FactState:
    if isinstance(fact, Unread):
        return FactState.UNREAD
    if isinstance(fact, PartialHead):
        return FactState.PARTIAL
    return FactState.SKIPPED if isinstance(fact, Skipped) else FactState.READ


def has_public_grant(acl: Acl | Unread | Skipped) -> bool | None:
    """Return True if the ACL has a grant to everyone or to any account; None if the ACL was not read."""
    if not isinstance(acl, Acl):
        return None
    return any(grant.grantee in PUBLIC_GROUPS for grant in acl.grants)


def is_public(verdict: Verdict | None) -> bool | None:
    """Return True if anyone or any account can reach the object; None if that is unknown, or if the object is gone."""
    return None if verdict in (None, Verdict.UNKNOWN) else verdict is Verdict.EXPOSED


def first_prefix(key: str) -> str:
    """Return the key up to its first slash, with the slash; "" if it has none."""
    return key[: key.find("/") + 1]
