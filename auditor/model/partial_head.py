"""A HEAD of which only some members are known: the answer of another source than HeadObject, such as S3 Inventory."""

from __future__ import annotations

from dataclasses import fields
from typing import Final

from auditor.model.object import Head
from auditor.model.record import record

PARTIAL: Final = "partial"
"""The member of an object's line, in `head`, that is true for a partial HEAD."""
MEMBERS: Final = frozenset(field.name for field in fields(Head))


@record()
class PartialHead(Head):
    """A HEAD with members that were not read: unread names them. Their values are those of an absent header, and mean
    nothing.

    A rule that takes the whole HEAD, or an unread member, cannot judge a partial HEAD. Lines leave the unread members
    out, so that nobody takes them for absent.
    """

    unread: frozenset[str] = frozenset()
