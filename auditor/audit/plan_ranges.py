"""Plan ranges of keys for a target, with about the same number of keys in each.

The ranges come from the parts of the target's last run, without a call. If there are none, the bucket is listed, by at
most 160 calls and 128 for each range. As long as these seem to suffice, all keys are read, and the ranges are exact.
Otherwise the piece with the most unseen keys is bisected, between the last key seen in it and the next one, and the
numbers of keys are estimates. Either way the ranges together are the whole target, and no key is in two of them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from operator import itemgetter
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from auditor.aio.tasks import together
from auditor.config.resources import open_bucket
from auditor.config.settings import Settings
from auditor.errors import BucketError, CallFailed, ListingError, OutputError, UsageError
from auditor.model.target import Target
from auditor.runs.parts import Part, keys_at, named_parts
from auditor.runs.reading import RunReader, read_seal
from auditor.runs.run_files import SealedPart
from auditor.s3.calls import MAX_CALLS, Caller
from auditor.s3.engines.base import Engine, ListQuery, Position
from auditor.s3.listing import listed_page
from auditor.s3.rate import RateLimit

_NEAR: Final = 16
"""A cut may be off by one part in so many of a range, where a part of the last run ends: no line is then read."""
MOST: Final = 10_000
"""Largest number of ranges, which is also that of the parallel children of a Distributed Map of Step Functions."""

LAST: Final = "\U0010ffff"
"""The last code point: after a prefix and this one come no keys with the prefix, because Unicode keeps it free."""
_MARKS: Final = 16
"""Number of keys of a page that are kept as marks, unless all are."""
_DEPTH: Final = 12
"""Number of characters of a text that count, after the prefix that it shares with others."""
_DEEPER: Final = 8
"""Number of characters from which on the keys of a page are in a folder of their own, deep in the piece."""
_GROWTH: Final = 12.0
"""Largest ratio of unseen keys to those seen: an estimate from few keys is worth no more."""
_LONGEST: Final = 1024
"""Largest number of bytes of a text after which a listing begins."""


class KeyRange(Struct, frozen=True):
    """The keys after start_after, up to and including stop_at; None: no limit. keys: number of keys, or of object
    versions if the target is of all versions.
    """

    start_after: str | None
    stop_at: str | None
    keys: int


class RangePlan(Struct, frozen=True):
    """Ranges that together are the whole of a target, and of which no two have a key in common."""

    target: Target
    ranges: tuple[KeyRange, ...]
    run: str | None
    """ID of the run whose parts the ranges come from; None if the bucket was listed."""
    exact: bool
    """True if the numbers of keys are exact: at the time of the run, or of the listing."""
    calls: int
    """Number of calls that listed keys, retries included."""

    @property
    def keys(self) -> int:
        return sum(one.keys for one in self.ranges)

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as the JSON value that `auditor plan --format json` prints."""
        target = {"bucket": self.target.bucket, "prefix": self.target.prefix, "versions": self.target.versions}
        ranges = [{"start_after": one.start_after, "stop_at": one.stop_at, "keys": one.keys} for one in self.ranges]
        found = {"run": self.run, "exact": self.exact, "keys": self.keys, "calls": {"list": self.calls}}
        return {"target": target, **found, "ranges": ranges}


def check_number(ranges: int) -> None:
    """Raise UsageError unless a target may be cut into so many ranges."""
    if not 1 <= ranges <= MOST:
        raise UsageError(f"--ranges {ranges} is not valid: give a number from 1 to {MOST:,}")


def plan_from_run(target: Target, run: RunReader, ranges: int) -> RangePlan | None:
    """Plan the ranges of a whole target by the parts of its last complete run. Blocks.

    Return None if the run has no parts.json, no object or no readable part. At most one part is read for each range,
    and none where a part ends near to the range's end.
    """
    seal = read_seal(run.store, run.path)
    named = [(part, entry) for part, entry in named_parts(seal.parts if seal else ()) if part.kind == "objects"]
    parts = sorted(named, key=itemgetter(0))
    total = sum(entry.lines for _, entry in parts)
    if not total:
        return None
    try:
        cuts = tuple(increasing(_cuts_in(run, parts, total, ranges)))
    except OutputError:
        return None
    return _planned(target, KeyCuts(cuts, total, True), run.run_id, 0)


async def plan_by_listing(
    target: Target,
    settings: Settings,
    ranges: int,
    progress: Callable[[float], None] = lambda keys: None,
    *,
    most: int | None = None,
    rate: RateLimit | None = None,
) -> RangePlan:
    """Plan the ranges of a target by listing pages of it.

    progress: called with the estimated number of keys so far. most: largest number of calls; None: as many as a plan
    may take. rate: the limit of calls per second; None for one by the settings.

    Raises BucketError if the bucket cannot be listed, or the first call fails. If later calls fail, or
    `most` are spent, the keys that are known decide.
    """
    settings = replace(settings, max_calls=most)
    async with open_bucket(target.bucket, settings, concurrency=AT_ONCE, connections=AT_ONCE, rate=rate) as bucket:
        listing = partial(_list_keys, bucket.engine, bucket.caller, target)
        cuts = await find_cuts(listing, ranges, target.start_after, target.stop_at, most=most, progress=progress)
        exact = cuts.exact and not target.versions  # a key may have more versions than a page has room for
        return _planned(target, replace(cuts, exact=exact), None, bucket.caller.counts["list"])


async def _list_keys(engine: Engine, caller: Caller, target: Target, after: str | None, count: int) -> KeysFound:
    """Return at most one page of the keys of a target after any text. None is missing: only the last page may have
    none.
    """
    query = ListQuery(target.prefix, after, target.versions, min(count, PAGE))
    position: Position | None = None
    while True:
        page = await listed_page(engine, caller, target, query, position)
        listed = sorted([*(ref.key for ref in page.refs), *page.delete_markers])
        keys = [key for key in listed if after is None or key > after]
        if keys or page.next is None or page.next == position:
            return KeysFound(keys, page.next is not None)
        position = page.next


def _planned(target: Target, found: KeyCuts, run: str | None, calls: int) -> RangePlan:
    ends = [(target.start_after, 0), *found.cuts, (target.stop_at, found.keys)]
    ranges = tuple(KeyRange(start, stop, max(upto - before, 0)) for (start, before), (stop, upto) in pairwise(ends))
    return RangePlan(target, ranges, run, found.exact, calls)


def _cuts_in(run: RunReader, parts: Sequence[tuple[Part, SealedPart]], total: int, ranges: int) -> Iterator[Cut]:
    """Yield the key of the line at the end of each range but the last, or of a line near to it at the end of a part.
    parts: the files of objects, each with its entry in the seal, which may not name the key of its last line.
    """
    wanted = deque(sorted({max(1, total * number // ranges) for number in range(1, ranges)}))
    near, done = total // (ranges * _NEAR), 0
    for part, one in parts:
        end, lines = done + one.lines, list[int]()
        while wanted and wanted[0] <= end + near * bool(one.last):
            lines.append(wanted.popleft())
        at_end = bool(lines) and bool(one.last) and lines[-1] >= end - near
        inside = [line - done for line in (lines[:-1] if at_end else lines)]
        if inside:
            keys = keys_at(run.store, run.path, part, inside)
            yield from ((key, done + line) for line, key in zip(inside, keys, strict=True))
        if at_end:
            yield one.last or "", end
        done = end


class KeyPiece(Struct):
    """The keys after one text up to another one, of which the first ones are seen.

    first, last: the first and the last key seen. upto: None for no limit. count: number of keys seen. marks: some of
    them, each with the number of keys up to it. unseen: estimated number of the further keys. whole: True if there are
    none.
    """

    first: str
    last: str
    upto: str | None
    count: int = 0
    marks: list[tuple[int, str]] = field(default_factory=list)
    unseen: float = 0.0
    whole: bool = False
    page: tuple[str, int] = ("", 0)
    """The first key of the last page, and the number of its keys."""
    differing: frozenset[str] = frozenset()
    """The characters in which the keys of the last page differ."""
    ends_folder: bool = False
    """True if it was cut at the end of a folder, and no page of it was read since. Where folders have about a page of
    keys, nothing is left of it, whatever its unseen keys are taken to be: one call says so."""

    @classmethod
    def of(cls, upto: str | None, keys: Sequence[str], *, more: bool, every: bool) -> KeyPiece:
        """Return the piece that begins with these keys, of which there is one at least."""
        piece = cls(keys[0], keys[-1], upto)
        piece.add(keys, more=more, every=every)
        return piece

    @property
    def size(self) -> float:
        """The number of keys in the piece, an estimate unless it is whole."""
        return self.count + self.unseen

    def add(self, keys: Sequence[str], *, more: bool, every: bool) -> None:
        """Add the keys that follow the last one seen. more: True if the piece has further ones. every: True if each of
        them becomes a mark.
        """
        if keys:
            step = 1 if every else max(1, len(keys) // _MARKS)
            self.marks += [(self.count + at + 1, keys[at]) for at in range(step - 1, len(keys), step)]
            self.count, self.last, self.page = self.count + len(keys), keys[-1], (keys[0], len(keys))
            self.ends_folder = False
            turned = [key[::-1] for key in keys]
            begin, end = _shared(keys[0], keys[-1]), _shared(min(turned), max(turned))
            self.differing = frozenset("".join(key[begin : len(key) - end] for key in keys))
        self.end_at(self.upto, more=more)

    def end_at(self, upto: str | None, *, more: bool = True) -> None:
        """Take a text as the end of the piece. Its unseen keys are taken to be as dense as those of the last page."""
        self.upto = upto
        self.whole = not more or (upto is not None and upto <= self.last)
        begin, count = self.page
        letters, depth = self._letters(), _shared(begin, upto)
        first, last, end = (_place(text, depth, letters) for text in (begin, self.last, upto))
        dense = count * (end - last) / max(1, last - first)
        self.unseen = 0.0 if self.whole else max(1.0, min(_GROWTH * self.count, dense))

    def middle(self) -> str:
        """Return a text about half way between the last key seen and the end, or that key if there is none between.

        If the keys of the last page are in a folder of their own, deep in the piece, the text is the end of all keys
        with a prefix of half the depth: so the end of the folder is found.
        """
        depth, own = _shared(self.last, self.upto), _shared(self.page[0], self.last)
        if own - depth > _DEEPER:
            text = self.last[: (own + depth) // 2] + LAST
        else:
            letters = self._letters()
            low, high = (_place(text, depth, letters) for text in (self.last, self.upto))
            text = _text_between(self.last[:depth], low, high, letters)
        between = text > self.last and (self.upto is None or text < self.upto)
        return text if between and len(text.encode()) <= _LONGEST else self.last

    def _letters(self) -> str:
        """Return the characters by which texts of the piece have their places, in order: those in which the keys of the
        last page differ, and those in which the last key differs from the end.
        """
        depth = _shared(self.last, self.upto)
        ends = (text[depth : depth + 1] for text in (self.last, self.upto or ""))
        return "".join(sorted(self.differing.union(*ends)))


def _place(text: str | None, depth: int, letters: str) -> int:
    """Return the place of a text among the texts of these letters that share its first `depth` characters; None is the
    end of all.
    """
    base, place = len(letters) + 2, 0
    if text is None:
        return base**_DEPTH
    part = text[depth : depth + _DEPTH]
    for character in part:
        place = place * base + bisect_left(letters, character) + 1
    return int(place * base ** (_DEPTH - len(part)))


def _text_between(prefix: str, low: int, high: int, letters: str) -> str:
    """Return a short text that begins with a prefix and has a place about half way between two others."""
    text, rest, width = prefix, (low + high) // 2, (len(letters) + 2) ** _DEPTH
    while width > 1 and width > (high - low) // 8:
        width //= len(letters) + 2
        digit, rest = divmod(rest, width)
        if digit == 0:
            break
        text += (letters + LAST)[digit - 1]
    return text


def _shared(one: str, other: str | None) -> int:
    """Return the number of characters with which both texts begin."""
    pairs = enumerate(zip(one, other or "", strict=False))
    return next((at for at, (mine, its) in pairs if mine != its), min(len(one), len(other or "")))


PAGE: Final = 1000
"""Number of keys on a page of S3's listing."""
AT_ONCE: Final = 16
"""Number of pages that are listed side by side."""
_CALLS: Final = 160
"""Number of calls that a plan may send for any number of ranges."""
_CALLS_EACH: Final = 128
"""Number of calls that a plan may send for each range beyond these. For 64 ranges it sends 8,352 calls at most."""
_FEW: Final = 8
"""Number of pages that are read one after the other: to divide so few keys takes more calls than it saves time."""
_FINENESS: Final = 16
"""Number of pieces for each range, at least, from which the cuts are chosen."""

Cut = tuple[str, int]
"""The last key of a range, and the number of keys up to it."""


class KeysFound(Struct, frozen=True):
    """Some keys in order, a key twice where it has two versions. more: True if there are further keys."""

    keys: Sequence[str]
    more: bool


ListKeys = Callable[[str | None, int], Awaitable[KeysFound]]
"""Lists keys after a text, at most so many; None: from the first key on."""


class KeyCuts(Struct, frozen=True):
    """The ends of all ranges but the last one, in order. keys: number of all keys. exact: False if the numbers are
    estimates.
    """

    cuts: tuple[Cut, ...]
    keys: int
    exact: bool


def call_budget(ranges: int) -> int:
    """Return the largest number of calls that a plan of so many ranges may send."""
    return _CALLS + _CALLS_EACH * ranges


async def find_cuts(
    listing: ListKeys,
    ranges: int,
    after: str | None,
    upto: str | None,
    *,
    page: int = PAGE,
    most: int | None = None,
    progress: Callable[[float], None] = lambda keys: None,
) -> KeyCuts:
    """Return cuts for a number of ranges of the keys after one text, up to another one; None: no limit.

    Each cut is a key of the bucket. The ranges between the cuts cover all keys, whatever the estimates are worth: the
    estimates only decide how equal the ranges are. page: number of keys in a page of the listing. most: largest number
    of calls; None for that of call_budget(), which none exceeds. progress: called with the estimated number of all keys
    so far.

    Raises what the first call raises, and ListingError for a listing that cannot be right. If a later call fails, or
    the calls are spent, the ranges are cut by the keys that are known.
    """
    budget = call_budget(ranges)
    search = _Bisection(listing, ranges, page, budget if most is None else min(most, budget))
    await search.run(after, upto, progress)
    pieces = sorted(search.pieces, key=lambda piece: piece.first)
    exact = not search.ended and all(piece.whole for piece in pieces)
    return KeyCuts(tuple(increasing(_cuts(pieces, ranges))), round(sum(piece.size for piece in pieces)), exact)


class _Bisection:
    """Divides the keys into pieces, and lists pages of them. left: number of calls that it may send. ended: True if
    there was no call left, or one failed.
    """

    def __init__(self, listing: ListKeys, ranges: int, page: int, left: int) -> None:
        self.pieces: list[KeyPiece] = []
        self.ended = False
        self._listing = listing
        self._ranges = ranges
        self._page = page
        self._left = left

    @property
    def _few(self) -> bool:
        """True if few keys are seen so far."""
        return sum(piece.count for piece in self.pieces) < _FEW * self._page

    async def run(self, after: str | None, upto: str | None, progress: Callable[[float], None]) -> None:
        """List pages until all keys are seen, the pieces are small enough, the calls are spent, or one fails."""
        keys, more = await self._keys(after, upto)
        if keys:
            self.pieces.append(KeyPiece.of(upto, keys, more=more, every=True))
        while not self.ended and (chosen := self._chosen()):
            await together(self._see(piece, text) for piece, text in chosen)
            progress(sum(piece.size for piece in self.pieces))

    def _chosen(self) -> list[tuple[KeyPiece, str]]:
        """Return the pieces to list from next, each with the text after which: its last key seen, or its middle."""
        unread = sorted((piece for piece in self.pieces if not piece.whole), key=lambda piece: -piece.unseen)
        if sum(piece.unseen / self._page + 1 for piece in unread) <= self._left:
            return self._read_on(unread)
        small = sum(piece.size for piece in self.pieces) / (self._ranges * _FINENESS)
        return [(piece, piece.middle()) for piece in unread[:AT_ONCE] if piece.unseen > small]

    def _read_on(self, unread: Sequence[KeyPiece]) -> list[tuple[KeyPiece, str]]:
        """Read the pieces on, of which the largest come first, and divide some so that AT_ONCE can be read on."""
        free = 0 if self._few else max(0, AT_ONCE - len(unread))
        large = [piece for piece in unread if piece.unseen > _FEW * self._page and not piece.ends_folder][:free]
        others = [piece for piece in unread if piece not in large][: AT_ONCE - len(large)]
        return [(piece, piece.middle()) for piece in large] + [(piece, piece.last) for piece in others]

    async def _see(self, piece: KeyPiece, text: str) -> None:
        """List the keys of a piece after a text. If it is not the last key seen, they are a piece of their own."""
        keys, more = await self._keys(text, piece.upto)
        if self.ended:
            return
        if text == piece.last:
            piece.add(keys, more=more, every=self._few)
            return
        if keys:
            self.pieces.append(KeyPiece.of(piece.upto, keys, more=more, every=False))
        piece.end_at(text)
        piece.ends_folder = text.endswith(LAST)

    async def _keys(self, after: str | None, upto: str | None) -> tuple[Sequence[str], bool]:
        """Return a page of the keys between two texts, and whether further ones follow. Without an answer the search
        has ended.
        """
        self._left -= 1
        try:
            if self._left < 0:
                raise CallFailed("ListObjectsV2", MAX_CALLS)
            found = await self._listing(after, self._page)
        except (BucketError, CallFailed) as failure:
            spent = isinstance(failure, CallFailed) and failure.code == MAX_CALLS
            if isinstance(failure, ListingError) or not (self.pieces or spent):
                raise
            self.ended = True
            return (), False
        keys = found.keys if upto is None else [key for key in found.keys if key <= upto]
        return keys, found.more and len(keys) == len(found.keys)


def increasing(cuts: Iterable[Cut]) -> Iterator[Cut]:
    """Leave out the cuts whose key is not after that of the cut before."""
    last: str | None = None
    for key, number in cuts:
        if last is None or key > last:
            yield key, number
            last = key


def _cuts(pieces: Sequence[KeyPiece], ranges: int) -> Iterator[Cut]:
    """Yield the known key that is nearest to the end of each range but the last."""
    total, done, number = sum(piece.size for piece in pieces), 0.0, 1
    for at, piece in enumerate(pieces):
        known = [*piece.marks, *((piece.size, following.first) for following in pieces[at + 1 : at + 2])]
        while number < ranges and done + piece.size >= (end := total * number / ranges):
            keys, key = min(known, key=lambda mark: abs(done + mark[0] - end))
            if done + keys < total:
                yield key, round(done + keys)
            number += 1
        done += piece.size
