"""Decide which objects get another ACL, so that no grant opens them to everyone, and which ACL that is."""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from typing import Final

from auditor.audit.kit.grants import PUBLIC, KitObject
from auditor.model.access import Verdict
from auditor.model.object import ANONYMOUS_OWNER, Acl

PRIVATE: Final = "private"
OWNER_TOO: Final = "bucket-owner-full-control"
_WRITING: Final = frozenset({"WRITE_ACP", "FULL_CONTROL"})


class Kept(StrEnum):
    """The reason for which an exposed object keeps its ACL."""

    INTENDED = "intended"
    """An exception says that it is public on purpose."""
    BY_POLICY = "by-policy"
    """No grant to everyone opens it: the bucket policy does."""
    UNREAD = "unread"
    """Its ACL is not known: whether a grant opens it too is not known either."""
    ANONYMOUS = "anonymous"
    """Nobody owns it, so that everyone may change its ACL again."""
    FOREIGN = "foreign"
    """Another account owns it, and lets the bucket's owner not change the ACL."""


class AclCloser:
    """Chooses the objects that are exposed by their ACL. own: canonical ID of the bucket's owner."""

    def __init__(self, own: str) -> None:
        self._own = own
        self.kept: Counter[Kept] = Counter()
        """Number of exposed objects that keep their ACL."""

    def canned(self, one: KitObject) -> str | None:
        """Return the canned ACL that the object is to get; None if it keeps its own."""
        if one.line.verdict is not Verdict.EXPOSED:
            return None
        reason = self._kept(one)
        if reason is not None:
            self.kept[reason] += 1
            return None
        acl = one.line.acl
        return PRIVATE if isinstance(acl, Acl) and acl.owner == self._own else OWNER_TOO

    def _kept(self, one: KitObject) -> Kept | None:
        acl = one.line.acl
        if one.is_intended:
            return Kept.INTENDED
        if not isinstance(acl, Acl):
            return Kept.UNREAD
        if acl.owner != ANONYMOUS_OWNER and not any(grant.grantee in PUBLIC for grant in acl.grants):
            return Kept.BY_POLICY
        if acl.owner == ANONYMOUS_OWNER:
            return Kept.ANONYMOUS
        if acl.owner == self._own:
            return None
        may = any(grant.grantee == self._own and grant.permission in _WRITING for grant in acl.grants)
        return None if may else Kept.FOREIGN
