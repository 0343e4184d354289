"""List those who get in: leave out each requester whom a listed account, principal or organization contains."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

Place = tuple[str, str | None]
"""Kind and name of a place."""
ANY_PLACE: Final[Place] = ("", None)
Label = tuple[str, str | None, str, str | None]
"""Kind and name of a requester, then kind and name of its place; an empty kind for any place."""
Labels = dict[Label, str | None]
"""Those who get in, each with the header that it needs."""


class Entry(NamedTuple):
    """One request that got in.

    header: the header that it needs. organization: the named one that the requester belongs to. wider: kinds and names
    of the parties that the requester is, or belongs to. places: those that contain its place. is_open: True if
    everybody can send requests from there.
    """

    label: Label
    header: str | None
    organization: str | None
    wider: frozenset[tuple[str, str | None]]
    places: frozenset[Place]
    is_open: bool

    @property
    def parties(self) -> set[tuple[str, str | None]]:
        """The parties that contain the requester, but for itself."""
        inside = set() if self.organization is None else {("organization", self.organization)}
        return {*self.wider, *inside} - {self.label[:2]}


def listed(entries: Iterable[Entry]) -> Labels:
    """Return the labels of the entries that no other entry contains."""
    entries = list(entries)
    known = _known(entries)
    own = [entry for entry in entries if not _is_of_another(entry, known, entry.parties)]
    # A label that is itself left out contains nobody: "source 444455556666" of one service has no other service's.
    known = _known(own)
    own = [entry for entry in entries if not _is_of_another(entry, known, entry.parties)]
    known = _known(own)
    found: Labels = {}
    for entry in own:
        if not _is_of_another(entry, known, {entry.label[:2]}):
            note(found, entry.label, entry.header)
    return found


def _known(entries: Iterable[Entry]) -> dict[tuple[Label, str | None], set[str | None]]:
    found: dict[tuple[Label, str | None], set[str | None]] = {}
    for entry in entries:
        found.setdefault((entry.label, entry.organization), set()).add(entry.header)
    return found


def note(labels: Labels, label: Label, header: str | None) -> None:
    """Note that a requester gets in; of several headers that would do the first in order of length counts."""
    if label not in labels or (
        labels[label] is not None and (header is None or len(header) < len(labels[label] or ""))
    ):
        labels[label] = header


def _is_of_another(
    entry: Entry, known: dict[tuple[Label, str | None], set[str | None]], parties: Iterable[tuple[str, str | None]]
) -> bool:
    """True if one of the parties to which the requester belongs gets in, too: from there or from anywhere, with no
    header that the requester can do without.
    """
    for party in parties:
        for place in entry.places:
            label: Label = (*party, *place)
            for organization in (entry.organization, None):
                headers = known.get((label, organization), set())
                if label != entry.label and not headers.isdisjoint((None, entry.header)):
                    return True
    return False
