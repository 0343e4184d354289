"""Stand-ins for values that a run folder does not have: of user metadata, and of digests.

A run folder has the names of user metadata, and their values only if the configuration asks for them. A rule that is
judged again from the folder may use the names. If it asks for a value, the stand-in raises NotStored, so that an empty
value never stands for an unknown one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from auditor.errors import NotStored
from auditor.model.object import DigestSources


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
