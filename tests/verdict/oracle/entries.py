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
_NOBODY: Final = "nobody"


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


def listed(entries: Iterable[Entry]) -> Labels:
    """Return the labels of the entries that no other entry contains."""
    entries = list(entries)
    known: dict[tuple[Label, str | None], set[str | None]] = {}
    for entry in entries:
        known.setdefault((entry.label, entry.organization), set()).add(entry.header)
    found: Labels = {}
    for entry in entries:
        if not _is_of_another(entry, known):
            note(found, entry.label, entry.header)
    return found


def note(labels: Labels, label: Label, header: str | None) -> None:
    """Note that a requester gets in; of several headers that would do the first in order of length counts."""
    if label not in labels or (
        labels[label] is not None and (header is None or len(header) < len(labels[label] or ""))
    ):
        labels[label] = header


def _is_of_another(entry: Entry, known: dict[tuple[Label, str | None], set[str | None]]) -> bool:
    """True if the requester belongs to an account, principal or organization that gets in, too: from there or from
    anywhere, with no header that the requester can do without.
    """
    itself = entry.label[:2]
    parties: set[tuple[str, str | None]] = {itself, *entry.wider}
    if entry.organization is not None:
        parties.add(("organization", entry.organization))
    for party in parties:
        for place in entry.places:
            label: Label = (*party, *place)
            for organization in (entry.organization, None):
                headers = known.get((label, organization), set())
                if label != entry.label and not headers.isdisjoint((None, entry.header)):
                    return True
    return False
