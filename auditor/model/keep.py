"""How long a run may keep what an earlier run read of an object that stands unchanged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct, field

from auditor.model.head_groups import CONTENT, GROUPS

ACL: Final = "acl"
HEAD: Final = "head"
NAMES: Final = (ACL, HEAD, *GROUPS)
"""The facts that can have a limit: the ACL, each group of members of the HEAD, and `head` for the changing groups
without a limit of their own.
"""
_FOREVER: Final = float("inf")


class Keep(Struct, frozen=True):
    """The largest age of kept facts. limits: in seconds, by a name in NAMES.

    A fact without a limit is never kept, except the members of the HEAD that only a write of the object changes: these
    are kept while the object stands, unless they have a limit too.
    """

    limits: Mapping[str, float] = field(default_factory=dict)

    @property
    def acl(self) -> float | None:
        """Largest age of an ACL; None to keep none."""
        return self.limits.get(ACL)

    def head(self, groups: Iterable[str]) -> float | None:
        """Return the largest age of a HEAD of which these groups are needed; None to keep none."""
        found = [self._of(group) for group in groups]
        known = [limit for limit in found if limit is not None]
        return min(known, default=_FOREVER) if len(known) == len(found) else None

    def _of(self, group: str) -> float | None:
        if group == CONTENT:
            return self.limits.get(CONTENT, _FOREVER)
        return self.limits.get(group, self.limits.get(HEAD))
