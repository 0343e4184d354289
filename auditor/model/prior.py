"""Facts of an object that a run takes from an earlier source in place of asking for them."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from auditor.model.object import Acl, DormantAcl, FactSource, Head, ReadAt


class Prior(Struct, frozen=True):
    """The facts of one listed object that may be used without a call; None for each fact that has to be asked.

    Whoever makes a Prior has checked that the facts are of the listed object (the same version, ETag, size and
    LastModified), and that none of them is too old. A HEAD may lack members only if nothing in the run needs them.

    acl_at, head_at: when the fact was read, or a moment before that, in ISO 8601 in UTC. acl_from, head_from: the
    source that read it.
    """

    acl: Acl | None = None
    acl_at: str | None = None
    acl_from: FactSource = FactSource.RUN
    head: Head | None = None
    head_at: str | None = None
    head_from: FactSource = FactSource.RUN
    dormant: DormantAcl | None = None
    """The hidden part of the stored ACL, which no call shows; None if it is unknown or empty."""

    def read_at(self, *, acl: bool, head: bool) -> ReadAt | None:
        """Return when and where the facts of the object were read. acl, head: True if the run used this fact."""
        if not acl and not head:
            return None
        return ReadAt(
            self.acl_at if acl else None,
            self.head_at if head else None,
            self.acl_from if acl else None,
            self.head_from if head else None,
        )


NO_PRIOR: Final = Prior()
"""Stands for an object of which nothing is known: all of its facts are asked."""
