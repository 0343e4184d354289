"""Find the fewest keys and key prefixes that cover exactly the keys with a grant, in one pass over sorted keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from msgspec import Struct, field

G = TypeVar("G")


class Cover(NamedTuple):
    """A key, or a prefix of keys, that a statement of a policy names."""

    text: str
    is_prefix: bool


class _Unit(Struct, Generic[G]):
    """A key, or all keys that share their first `depth` characters. grants: those that all of these keys have. key: one
    of the keys.
    """

    key: str
    depth: int
    grants: frozenset[G]
    is_leaf: bool

    def cover(self, above: int) -> Cover:
        """Return what names these keys, and no other that was listed. above: number of characters that the keys share
        with others. A prefix ends after a slash if possible, else it is the longest one.
        """
        if self.is_leaf:
            return Cover(self.key, is_prefix=False)
        folder = self.key.rfind("/", above, self.depth) + 1
        return Cover(self.key[: folder or self.depth], is_prefix=True)


class _Branch(Struct, Generic[G]):
    """An open node of the trie of keys: the keys that share their first `depth` characters differ after it.

    children: those with grants that all of the keys up to now have. They are given out when a key lacks the grant.
    """

    depth: int
    grants: frozenset[G] | None = None
    children: list[tuple[Cover, frozenset[G]]] = field(default_factory=list)


class KeyCover(Generic[G]):
    """Takes the keys of a listing, sorted, each with its grants, and gives out covers: a prefix only if every key with
    this prefix has the grant. The memory depends on the length of the keys, not on their number.

    found: takes a grant and a key or prefix that has it. floor: a prefix that all keys have; nothing shorter is given
    out, because other keys were not listed.
    """

    def __init__(self, found: Callable[[G, Cover], object], floor: str = "") -> None:
        self._found = found
        self._floor = floor
        self._branches: list[_Branch[G]] = [_Branch(len(floor))]
        self._last: _Unit[G] | None = None
        self.sorted = True
        """False if the keys did not come in order: the prefixes that were given out then prove nothing."""

    def add(self, key: str, grants: frozenset[G]) -> None:
        """Take the next key. Each key may come once."""
        unit = self._last
        if unit is not None:
            if key <= unit.key:
                self.sorted = False
                return
            shared = _shared(unit.key, key)
            unit = self._closed(unit, shared)
            if self._branches[-1].depth < shared:
                self._branches.append(_Branch(shared))
            self._absorb(self._branches[-1], unit)
        self._last = _Unit(key, len(key), grants, is_leaf=True)

    def end(self) -> None:
        """Give out the covers of all keys that are left. Call it once, after the last key."""
        if self._last is None:
            return
        root = self._branches[0]
        unit = self._closed(self._last, root.depth)
        if root.grants is None:  # all keys share more than the floor
            for grant in unit.grants:
                self._found(grant, unit.cover(root.depth))
            return
        self._absorb(root, unit)
        for grant in root.grants:
            self._found(grant, Cover(self._floor, is_prefix=True))

    def _closed(self, unit: _Unit[G], shared: int) -> _Unit[G]:
        """Close each open node with more characters than `shared`, and return the last one, which has all of them."""
        while (branch := self._branches[-1]).depth > shared:
            self._absorb(branch, unit)
            unit = _Unit(unit.key, branch.depth, branch.grants or frozenset(), is_leaf=False)
            self._branches.pop()
        return unit

    def _absorb(self, branch: _Branch[G], unit: _Unit[G]) -> None:
        if branch.grants is None:
            branch.grants = unit.grants
            if unit.grants:
                branch.children.append((unit.cover(branch.depth), unit.grants))
            return
        if not (unit.grants or branch.grants):
            return
        cover = unit.cover(branch.depth)
        self._give(cover, unit.grants - branch.grants)
        if lost := branch.grants - unit.grants:
            branch.grants -= lost
            for child, grants in branch.children:
                self._give(child, grants & lost)
            left = ((child, grants - lost) for child, grants in branch.children)
            branch.children = [one for one in left if one[1]]
        if both := unit.grants & branch.grants:
            branch.children.append((cover, both))

    def _give(self, cover: Cover, grants: frozenset[G]) -> None:
        for grant in grants:
            self._found(grant, cover)


def _shared(first: str, second: str) -> int:
    """Return the number of characters at the beginning of both texts that are equal."""
    low, high = 0, min(len(first), len(second))
    while low < high:
        middle = (low + high + 1) // 2
        if first[low:middle] == second[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
