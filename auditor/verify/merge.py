"""Merge the listing with the ledger by key. Both come in the order of keys, so memory holds neither."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing
from dataclasses import replace
from typing import Final

from auditor.errors import LedgerError
from auditor.ledger.base import KeyRecord, Version
from auditor.ledger.matching import NULL
from auditor.model.object import ObjectRef
from auditor.model.record import record
from auditor.model.target import Target
from auditor.s3.listing import Listed
from auditor.text import visible

MOST: Final = 1000
"""Pairs that are yielded together."""


@record()
class Pair:
    """One object version in the listing and in the ledger. ref None: not listed, or a delete marker.

    subject: the ledger's record of the key; None: it has none. absent: the listing lacks the subject's object, or this
    `version` of it. delete_markers: passed since the pair before.
    """

    key: str
    ref: ObjectRef | None
    subject: KeyRecord | None
    absent: bool = False
    version: Version | None = None
    delete_markers: int = 0


async def merged(
    pages: AsyncGenerator[list[Listed], None], subjects: AsyncGenerator[KeyRecord, None], target: Target
) -> AsyncGenerator[list[Pair], None]:
    """Pairs in key order, about a page of the listing at a time. The objects that only the ledger has come between the
    listed keys, and the rest of them after the listing's end. Raises the errors of the listing and of the ledger.
    """
    async with aclosing(pages), aclosing(subjects):
        ledger = _Ahead(subjects, target)
        key = _Key("", None)
        async for page in pages:
            pairs: list[Pair] = []
            for step in page:
                if step.key != key.name:
                    pairs += key.end(target.versions)
                    while (subject := await ledger.before(step.key)) is not None:
                        pairs += _absent(subject, target.versions)
                        if len(pairs) >= MOST:
                            yield pairs
                            pairs = []
                    key = _Key(step.key, await ledger.at(step.key))
                pairs.append(key.step(step))
            yield pairs
        pairs = list(key.end(target.versions))
        while (subject := await ledger.before(None)) is not None:
            pairs += _absent(subject, target.versions)
            if len(pairs) >= MOST:
                yield pairs
                pairs = []
        yield pairs


class _Key:
    """The present key of the listing, and the ledger's versions of it that were not listed yet."""

    def __init__(self, name: str, subject: KeyRecord | None) -> None:
        self.name = name
        self._subject = subject
        self._awaited = {version.version_id: version for version in _real_versions(subject)}
        self._listed = False
        self._current = False

    def step(self, step: Listed) -> Pair:
        ref = step.ref
        if ref is not None:
            self._listed = True
            self._current = self._current or ref.is_latest
            self._awaited.pop(ref.version_id or NULL, None)
        return Pair(step.key, ref, self._subject, delete_markers=step.delete_markers)

    def end(self, versions: bool) -> Iterator[Pair]:
        """Once the key is listed whole: pairs for the ledger's versions that the listing lacks."""
        if not versions or self._subject is None:
            return
        if not self._listed:  # the listing has delete markers only
            yield from _absent(self._subject, versions)
            return
        for version in self._awaited.values():
            yield Pair(self.name, None, self._subject, absent=True, version=version)
        if self._subject.expectations and not self._current:
            # A manifest expects a current version, and the current one is a delete marker.
            yield Pair(self.name, None, replace(self._subject, versions=()), absent=True)


def _absent(subject: KeyRecord, versions: bool) -> Iterator[Pair]:
    """Pairs for a key that is not listed: one for the key, or one for each version in a listing of versions."""
    real: list[Version | None] = [*_real_versions(subject)] if versions else []
    for version in real or [None]:
        yield Pair(subject.key, None, subject, absent=True, version=version)


def _real_versions(subject: KeyRecord | None) -> Iterator[Version]:
    """Versions that have a version ID and digests, each once."""
    found = {} if subject is None else {one.version_id: one for one in subject.versions if one.digests}
    return (version for name, version in found.items() if name != NULL)


class _Ahead:
    """The ledger's subjects in the target's range, read one ahead."""

    def __init__(self, subjects: AsyncIterator[KeyRecord], target: Target) -> None:
        self._subjects = subjects
        self._target = target
        self._next: KeyRecord | None = None
        self._last: str | None = None
        self._ended = False

    async def before(self, key: str | None) -> KeyRecord | None:
        """The next subject, if its key comes before `key`. None as key: any subject."""
        subject = await self._peek()
        if subject is None or (key is not None and subject.key >= key):
            return None
        self._next = None
        return subject

    async def at(self, key: str) -> KeyRecord | None:
        """The next subject, if it has this key."""
        subject = await self._peek()
        if subject is None or subject.key != key:
            return None
        self._next = None
        return subject

    async def _peek(self) -> KeyRecord | None:
        while self._next is None and not self._ended:
            subject = await anext(self._subjects, None)
            if subject is None or self._target.beyond(subject.key):
                self._ended = True
                break
            if self._last is not None and subject.key <= self._last:
                raise LedgerError(
                    f"the ledger does not list its keys in order ({visible(subject.key)[:100]}): nothing can be"
                    " compared with it"
                )
            self._last = subject.key
            if self._target.covers(subject.key):
                self._next = subject
        return self._next
