"""Facts of objects that a run takes from an earlier source, how long it may keep them, and stand-ins for the values
that a run folder does not have.

A run folder has the names of user metadata, and their values only if the configuration asks for them. A rule that is
judged again from the folder may use the names. If it asks for a value, the stand-in raises NotStored, so that an empty
value never stands for an unknown one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from msgspec import Struct, field

from auditor.errors import NotStored
from auditor.model.object import CONTENT, GROUPS, Acl, DigestSources, DormantAcl, FactOrigin, Head, ReadAt

ACL: Final = "acl"
HEAD: Final = "head"
NAMES: Final = (ACL, HEAD, *GROUPS)
"""The facts that can have a limit: the ACL, each group of members of the HEAD, and `head` for the changing groups
without a limit of their own.
"""
_FOREVER: Final = float("inf")


class ReusePolicy(Struct, frozen=True):
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


class KnownFacts(Struct, frozen=True):
    """The facts of one listed object that may be used without a call; None for each fact that has to be asked.

    Whoever makes them has checked that they are of the listed object (the same version, ETag, size and LastModified),
    and that none of them is too old. A HEAD may lack members only if nothing in the run needs them.

    acl_at, head_at: when the fact was read, or a moment before that, in ISO 8601 in UTC. acl_from, head_from: the
    source that read it.
    """

    acl: Acl | None = None
    acl_at: str | None = None
    acl_from: FactOrigin = FactOrigin.RUN
    head: Head | None = None
    head_at: str | None = None
    head_from: FactOrigin = FactOrigin.RUN
    dormant: DormantAcl | None = None
    """The hidden part of the stored ACL, which no call shows; None if it is unknown or empty."""
    unreported: bool = False
    """True if the run uses an S3 Inventory report, which does not tell the stored ACL of the object as it is listed."""

    @property
    def save_nothing(self) -> bool:
        """True if all of the object's facts have to be asked."""
        return self.acl is None and self.head is None and self.dormant is None

    def joined(self, other: KnownFacts) -> KnownFacts:
        """Return what two sources know: the later ACL, and this HEAD before the other one."""
        acl, head = self, self if self.head is not None else other
        if other.acl is not None and (self.acl is None or (other.acl_at or "") > (self.acl_at or "")):
            acl = other
        return KnownFacts(
            acl.acl,
            acl.acl_at,
            acl.acl_from,
            head.head,
            head.head_at,
            head.head_from,
            self.dormant or other.dormant,
            self.unreported or other.unreported,
        )

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


NO_FACTS: Final = KnownFacts()
"""Stands for an object of which nothing is known: all of its facts are asked."""


class NamesOnly(Mapping[str, str]):
    """User metadata with names but without values. A question for a value raises NotStored."""

    __slots__ = ("_names",)

    def __init__(self, names: Iterable[str]) -> None:
        self._names = dict.fromkeys(names)

    def __getitem__(self, name: str) -> str:
        if name not in self._names:
            raise KeyError(name)
        raise NotStored("the values of user metadata are not in the run folder")

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NamesOnly) and self._names == other._names

    __hash__ = None  # type: ignore[assignment]  # as that of a dict

    def __repr__(self) -> str:
        return f"NamesOnly({list(self._names)})"


class _NoDigests(Mapping[str, str]):
    """Digests that are not known. Every question raises NotStored."""

    __slots__ = ()

    def __getitem__(self, algorithm: str) -> str:
        raise _no_digests()

    def __contains__(self, algorithm: object) -> bool:
        raise _no_digests()

    def __iter__(self) -> Iterator[str]:
        raise _no_digests()

    def __len__(self) -> int:
        raise _no_digests()

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return "digests that are not stored"


def _no_digests() -> NotStored:
    return NotStored("the digests of objects are not in the run folder")


UNSTORED_DIGESTS: Final = DigestSources(stored=_NoDigests(), recorded=_NoDigests(), read=_NoDigests())
"""The digests of an object that is judged again, if the run had a ledger."""
