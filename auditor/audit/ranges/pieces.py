"""Divide a bucket's keys into pieces, each with an estimate of its keys, by listing a page here and there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from auditor.audit.ranges.places import KeyPlaces

LAST: Final = "\U0010ffff"
"""The last code point: after a prefix and this one come no keys with the prefix. No text uses it, because Unicode keeps
it free; where keys do, numbers of keys are wrong, and ranges less equal.
"""
_MARKS: Final = 16
"""Number of keys of a page that are kept."""
_LEARNT: Final = 20
"""Number of keys of a page from which the estimates learn."""
_LEVELS: Final = 4
"""Number of characters at which a piece is searched for keys beyond the known ones."""
_LONGEST: Final = 1024
"""Largest number of bytes of a key, and of the place where a listing begins."""
_SURROGATES: Final = range(0xD800, 0xE000)
_CRAMMED: Final = 1000.0
"""Assumed ratio of a piece's keys to those of a page whose first and last keys have the same place."""


class KeysFound(Struct, frozen=True):
    """Some keys in order, a key twice where it has two versions. more: True if there are further keys."""

    keys: Sequence[str]
    more: bool


ListKeys = Callable[[str | None, int], Awaitable[KeysFound]]
"""Lists keys after a text, at most so many; None: from the first key on."""


class KeyPiece(Struct):
    """The keys after one text up to another one, of which the first page is known."""

    after: str | None
    """None: there is no limit."""
    upto: str | None
    first: str
    last: str
    """The last known key; further ones may follow unless `whole`."""
    count: int
    """Number of known keys."""
    whole: bool
    """True if all keys of the piece are known."""
    marks: list[tuple[int, str]] = field(default_factory=list)
    """Some of the known keys, each with the number of known keys up to it."""
    tail: list[tuple[int, str]] = field(default_factory=list)
    """Keys near the last known one, each with the number of known keys after it."""

    def add(self, keys: Sequence[str]) -> None:
        """Add the keys that follow the last known one."""
        self.marks += _marks(keys, self.count)
        self.count += len(keys)
        self.last = keys[-1]
        self.tail = _tail(keys)

    def copy(self) -> KeyPiece:
        """Return a piece that can be divided while this one stays as it is."""
        return replace(self, marks=list(self.marks))

    def key_near(self, number: float) -> tuple[int, str]:
        """Return the mark whose number of known keys is nearest to `number`."""
        return min(self.marks, key=lambda mark: abs(mark[0] - number))

    @property
    def shared(self) -> str:
        """The prefix that all keys of the piece share."""
        return "" if self.upto is None else shared_prefix(self.first, self.upto)


class PieceFinder:
    """Finds pieces, and divides them. page: number of keys in a page of the listing."""

    def __init__(self, listing: ListKeys, page: int) -> None:
        self._listing = listing
        self.page = page
        self._places = KeyPlaces()

    async def find(self, after: str | None, upto: str | None) -> KeyPiece | None:
        """Return the piece between two texts, with its first page; None if it has no key."""
        keys, more = await self._keys(after, upto, self.page)
        if not keys:
            return None
        piece = KeyPiece(after, upto, keys[0], keys[-1], len(keys), not more, _marks(keys), _tail(keys))
        await self._look_beyond(piece)
        return piece

    async def divide(self, piece: KeyPiece) -> list[KeyPiece]:
        """Return the pieces into which this one falls at the middle of its unknown keys: one or two."""
        middle = self._middle(piece)
        right = await self.find(middle, piece.upto)
        piece.upto = middle
        if middle <= piece.last:
            piece.whole = True
        elif right is not None:
            keys, more = await self._keys(piece.last, middle, self.page)
            piece.whole = not more
            if keys:
                piece.add(keys)
            await self._look_beyond(piece)
        return [piece] if right is None else [piece, right]

    async def read_on(self, piece: KeyPiece) -> list[KeyPiece]:
        """Read the unknown keys of a piece, page by page, up to twice the estimated number of them.

        Return the piece, which is then whole, and a second one of the keys that were not reached: they are more than
        was estimated, so that they may be anywhere.
        """
        most = 2 * self.estimate(piece) + 2 * self.page
        while not piece.whole and piece.count < most:
            keys, more = await self._keys(piece.last, piece.upto, self.page)
            if keys:
                piece.add(keys)
            piece.whole = not more
        if piece.whole:
            return [piece]
        rest = await self.find(piece.last, piece.upto)
        piece.upto, piece.whole = piece.last, True
        return [piece] if rest is None else [piece, rest]

    def estimate(self, piece: KeyPiece) -> float:
        """Return the estimated number of keys in a piece; it is exact if the piece is whole.

        The keys beyond the known ones are taken to be as dense as those where the known keys are densest.
        """
        if piece.whole:
            return piece.count
        shared = piece.shared
        last, end = self._places.place(piece.last, shared), self._places.place(piece.upto, shared)
        if end <= last:
            return 2.0 * piece.count
        beyond = 1.0
        for number, key in piece.tail:
            width = last - self._places.place(key, shared)
            beyond = max(beyond, number * (end - last) / width if width > 0 else number * _CRAMMED)
        return piece.count + beyond

    def _middle(self, piece: KeyPiece) -> str:
        shared = piece.shared
        first, last, end = (self._places.place(text, shared) for text in (piece.first, piece.last, piece.upto))
        middle = max((first + end) / 2, (last + end) / 2 if (first + end) / 2 < last else 0.0)
        text = self._places.text_at(middle, shared, (end - last) / 64)
        return text if text > piece.last and (piece.upto is None or text < piece.upto) else piece.last

    async def _keys(self, after: str | None, upto: str | None, count: int) -> tuple[Sequence[str], bool]:
        """Return keys of a piece, and whether it has more of them."""
        found = await self._listing(after, count)
        self._places.learn(_spread(found.keys, _LEARNT))
        keys = found.keys if upto is None else [key for key in found.keys if key <= upto]
        return keys, found.more and len(keys) == len(found.keys)

    async def _after(self, piece: KeyPiece, text: str) -> str | None:
        """Return the first key of the piece after a text."""
        keys, _ = await self._keys(text, piece.upto, 1)
        return keys[0] if keys else None

    async def _look_beyond(self, piece: KeyPiece) -> None:
        """Look for the end of a piece that has more keys than the known ones, and for a key between the two."""
        if not piece.whole:
            await self._narrow(piece)
            await self._explore(piece)

    async def _narrow(self, piece: KeyPiece) -> None:
        """Bring the end of the piece near to its last key, if only its prefix is known."""
        shared = piece.shared
        if piece.upto not in (None, shared + LAST):
            return
        least, most = len(shared), len(shared_prefix(piece.first, piece.last))
        while least < most:  # do all keys begin with this many characters of the first one?
            length = (least + most + 1) // 2
            end = piece.first[:length] + LAST
            if not _short(end) or await self._after(piece, end) is not None:
                most = length - 1
            else:
                least, piece.upto = length, end
        base = piece.first[:least]
        if _short(base + LAST):
            piece.upto = base + chr(await self._last_character(piece, base)) + LAST

    async def _last_character(self, piece: KeyPiece, base: str) -> int:
        """Return the code point of the last character that follows the prefix `base` in a key of the piece."""
        known = ord(piece.last[len(base)]) if len(piece.last) > len(base) else 0
        step, beyond = 1, ord(LAST)
        while beyond - known > 1:
            tried = min(known + step, (known + beyond) // 2 if beyond < ord(LAST) else beyond - 1)
            if tried in _SURROGATES:
                tried = _SURROGATES.start - 1 if known < _SURROGATES.start - 1 else _SURROGATES.stop
            if not known < tried < beyond:
                break
            key = await self._after(piece, base + chr(tried) + LAST)
            if key is None:
                beyond, step = tried, ord(LAST)
            else:
                known, step = ord(key[len(base)]), 2 * step
        if beyond == ord(LAST) or await self._after(piece, base + chr(known) + LAST) is not None:
            return beyond
        return known

    async def _explore(self, piece: KeyPiece) -> None:
        """Look for a key between the last known one and the end, so that the estimate learns its characters."""
        if piece.upto is None:
            return
        at = len(shared_prefix(piece.last, piece.upto))
        end = ord(piece.upto[at]) if len(piece.upto) > at else 0
        for place in range(at, min(at + _LEVELS, len(piece.last))):
            known, base = ord(piece.last[place]), piece.last[:place]
            if not _short(base + LAST):
                return
            while end - known > 1:
                tried = (known + end) // 2 if end <= ord(LAST) else known + 1
                if tried in _SURROGATES:
                    tried = _SURROGATES.start - 1
                if not known < tried < end:
                    break
                if await self._after(piece, base + chr(tried)) is not None:
                    return
                end, piece.upto = tried, base + chr(tried)
            end = ord(LAST) + 1


def shared_prefix(one: str, other: str) -> str:
    """Return the longest text with which both texts begin."""
    length = next(
        (at for at, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), min(len(one), len(other))
    )
    return one[:length]


def _short(text: str) -> bool:
    """True if a listing may begin after the text."""
    return len(text.encode()) <= _LONGEST


def _spread(keys: Sequence[str], most: int) -> list[str]:
    """Return some of the keys, evenly spaced."""
    return list(keys[:: max(1, len(keys) // most)])


def _marks(keys: Sequence[str], before: int = 0) -> list[tuple[int, str]]:
    """Return some of the keys with their numbers. before: number of keys before them."""
    step = max(1, len(keys) // _MARKS)
    return [(before + at + 1, keys[at]) for at in range(step - 1, len(keys), step)]


def _tail(keys: Sequence[str]) -> list[tuple[int, str]]:
    last = len(keys) - 1
    return [(last - at, keys[at]) for at in sorted({0, last // 2, last * 3 // 4, last * 7 // 8}) if at < last]
