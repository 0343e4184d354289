"""Count how a change would move objects from one access to another: by verdict, audience and prefix, and print that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

from msgspec import Struct, field

from auditor.model.access import Audience, AudienceKind, ObjectAccess, Reason, ReasonCode, Verdict, contains
from auditor.model.json_codec import plain
from auditor.model.line_records import access_texts
from auditor.model.run_lines import first_prefix
from auditor.offline.explanation import SENTENCES, ReasonGroup, sentences_of
from auditor.reports.first_steps import OPEN
from auditor.reports.phrases import words_of
from auditor.reports.summary import largest_first
from auditor.reports.text_table import MOST, TableLayout
from auditor.text import counted, shorten, visible
from auditor.verdict.principals import ceph_user

SAMPLES: Final = 5
"""Largest number of objects that are named for each move."""
NAMES: Final = 1000
"""Largest number of prefixes, and of audiences, that are counted separately; the rest counts as OTHERS."""
OTHERS: Final = "others"
_WIDEST_FIRST: Final = list(Verdict)


class AccessChange(Struct, frozen=True):
    """The access to an object before and after a change. gains, loses: the audiences that get in only after, or only
    before it.
    """

    before: ObjectAccess
    after: ObjectAccess
    gains: tuple[Audience, ...]
    loses: tuple[Audience, ...]

    @property
    def predictable(self) -> bool:
        """True if the facts tell the verdict after the change."""
        return self.after.verdict is not Verdict.UNKNOWN

    @property
    def wider(self) -> bool:
        """True if the change opens the object to somebody: a new exposure."""
        widened = _WIDEST_FIRST.index(self.after.verdict) < _WIDEST_FIRST.index(self.before.verdict)
        return bool(self.gains) or (widened and self.after.verdict in OPEN)

    @property
    def narrower(self) -> bool:
        """True if the change takes the object from somebody, and opens it to nobody."""
        if not self.predictable or self.wider:
            return False
        closed = self.before.verdict in OPEN and self.after.verdict not in OPEN
        return bool(self.loses) or closed

    @property
    def moves(self) -> bool:
        """True if the verdict or the audience changes."""
        return self.before.verdict is not self.after.verdict or bool(self.gains or self.loses)

    @property
    def causes(self) -> tuple[str, ...]:
        """The reasons for which the access after the change is not known, in the form of Reason.text."""
        reasons = [reason for reason in self.after.reasons if SENTENCES[reason.code][0] is ReasonGroup.LEAVES_OPEN]
        return tuple(reason.text for reason in reasons) or ("a fact that was not read",)


@lru_cache(4096)
def change_of(before: ObjectAccess, after: ObjectAccess) -> AccessChange:
    """Compare the access to an object before and after a change. Most objects of a bucket have few different pairs."""
    gains = _outside(before.audience, after.audience)
    loses = _outside(after.audience, before.audience)
    return AccessChange(before, after, gains, loses if after.verdict is not Verdict.UNKNOWN else ())


def _outside(wide: Sequence[Audience], audiences: Sequence[Audience]) -> tuple[Audience, ...]:
    """Return those of the audiences that no audience of `wide` contains."""
    known = [_by_id(one) for one in wide]
    return tuple(one for one in audiences if not any(contains(other, _by_id(one)) for other in known))


def _by_id(audience: Audience) -> Audience:
    """Return a user of Ceph by the canonical ID, as an ACL names it. A policy of Ceph names it by an ARN. Return any
    other audience as it is.
    """
    user = ceph_user(audience.name) if audience.kind is AudienceKind.ACCOUNT and audience.name else None
    return audience if user is None else Audience(AudienceKind.CANONICAL_ID, user, audience.through)


class Move(NamedTuple):
    """A verdict before, and one after a change."""

    before: Verdict
    after: Verdict


class MovedObjects(Struct):
    """The objects of one move. prefixes: number of objects by the first folder of their keys. samples: keys and version
    IDs of the first objects.
    """

    objects: int = 0
    prefixes: Counter[str] = field(default_factory=Counter)
    samples: list[tuple[str, str | None]] = field(default_factory=list)

    def add(self, key: str, version_id: str | None) -> None:
        self.objects += 1
        _count(self.prefixes, first_prefix(key))
        if len(self.samples) < SAMPLES:
            self.samples.append((key, version_id))


class WhatIfCounts(Struct):
    """The counts of a change: the objects of a run, and the number of them that it opens, closes or leaves unknown."""

    objects: int = 0
    changed: int = 0
    wider: int = 0
    narrower: int = 0
    unpredictable: int = 0
    unknown_before: int = 0
    """Number of the unpredictable objects whose verdict is unknown before the change, too."""
    judged_otherwise: int = 0
    """Number of objects whose verdict before the change differs from the verdict in the run's line."""
    moves: dict[Move, MovedObjects] = field(default_factory=dict)
    gains: Counter[str] = field(default_factory=Counter)
    loses: Counter[str] = field(default_factory=Counter)
    causes: Counter[str] = field(default_factory=Counter)
    opened_by: dict[Reason | None, MovedObjects] = field(default_factory=dict)
    """The objects that the change opens, by each statement that then allows it; None: without such a statement."""
    closed_by: dict[Reason | None, MovedObjects] = field(default_factory=dict)
    """The objects that the change closes, by each statement that then denies it and did not before; None: without such
    a statement.
    """

    def add(self, key: str, version_id: str | None, change: AccessChange) -> None:
        self.objects += 1
        if not change.predictable:
            self.unpredictable += 1
            self.unknown_before += change.before.verdict is Verdict.UNKNOWN
            for cause in change.causes:
                _count(self.causes, cause)
        if not change.moves:
            return
        self.changed += 1
        self.wider += change.wider
        self.narrower += change.narrower
        move = Move(change.before.verdict, change.after.verdict)
        self.moves.setdefault(move, MovedObjects()).add(key, version_id)
        for one in change.gains:
            _count(self.gains, one.text)
        for one in change.loses:
            _count(self.loses, one.text)
        for reason in _statements(change, ReasonCode.POLICY_ALLOW) if change.wider else ():
            self.opened_by.setdefault(reason, MovedObjects()).add(key, version_id)
        for reason in _statements(change, ReasonCode.POLICY_DENY) if change.narrower else ():
            self.closed_by.setdefault(reason, MovedObjects()).add(key, version_id)

    @property
    def ordered(self) -> list[tuple[Move, MovedObjects]]:
        """The moves, sorted by the verdict after the change, the widest first, and then by the number of objects, the
        largest first.
        """
        return sorted(self.moves.items(), key=lambda item: (_WIDEST_FIRST.index(item[0].after), -item[1].objects))

    @property
    def exit_code(self) -> int:
        """The exit code of `auditor what-if`: 4 if an object's verdict is not predictable, 3 for a new exposure."""
        if self.unpredictable:
            return 4
        return 3 if self.wider else 0

    def to_dict(self) -> dict[str, Any]:
        """Return the counts as JSON values."""
        return {
            "objects": self.objects,
            "changed": self.changed,
            "new_exposure": self.wider,
            "narrower": self.narrower,
            "not_predictable": {
                "objects": self.unpredictable,
                "unknown_before": self.unknown_before,
                "causes": largest_first(self.causes),
            },
            "moves": [
                {
                    "before": move.before.value,
                    "after": move.after.value,
                    "objects": moved.objects,
                    "prefixes": largest_first(moved.prefixes),
                    "samples": [{"key": key, "version_id": version_id} for key, version_id in moved.samples],
                }
                for move, moved in self.ordered
            ],
            "gains": largest_first(self.gains),
            "loses": largest_first(self.loses),
        }


def _count(counts: Counter[str], name: str) -> None:
    counts[name if name in counts or len(counts) < NAMES else OTHERS] += 1


def _statements(change: AccessChange, code: ReasonCode) -> list[Reason] | list[None]:
    """Return the reasons of this code after the change: the new ones, or all if none is new; [None] for none at all."""
    found = [reason for reason in change.after.reasons if reason.code is code]
    return [reason for reason in found if reason not in change.before.reasons] or found or [None]


def changed_line(key: str, version_id: str | None, change: AccessChange) -> dict[str, Any]:
    """Return the JSON line of an object that the change moves, or whose verdict it makes unpredictable."""
    return {
        "key": key,
        "version_id": version_id,
        "before": _access(change.before),
        "after": _access(change.after),
        "gains": [audience.text for audience in change.gains],
        "loses": [audience.text for audience in change.loses],
        "new_exposure": change.wider,
        "predictable": change.predictable,
    }


def _access(access: ObjectAccess | None) -> dict[str, Any]:
    members: dict[str, Any] = plain(dict(zip(("verdict", "audience", "reasons"), access_texts(access), strict=True)))
    return members


def render(head: Iterable[tuple[str, str]], counts: WhatIfCounts, remarks: Sequence[str], columns: int) -> str:
    """Return the counts as a table for a terminal, safe to print. head: labels and words of the first lines, safe to
    print. remarks: sentences on the change.
    """
    layout = TableLayout(max(columns, 40))
    sections = [
        *(layout.listed(label, [words]) for label, words in head),
        _moves(counts, layout),
        layout.listed("Gain access", _audiences(counts.gains)),
        layout.listed("Lose access", _audiences(counts.loses)),
        layout.listed("Not predictable", _unpredictable(counts)),
        layout.listed("Remarks", remarks),
        layout.listed("Result", [_result(counts)]),
    ]
    return "".join(f"{line}\n" for section in sections for line in section)


def _moves(counts: WhatIfCounts, layout: TableLayout) -> Iterator[str]:
    for move, moved in counts.ordered:
        words = f"from {move.before} to {move.after}: {counted(moved.objects, 'object')}"
        if move.before is move.after:
            words = f"{move.before} as before, for others: {counted(moved.objects, 'object')}"
        yield from layout.listed("Objects", [words])
        yield from layout.pairs("", ((prefix or "no folder", n) for prefix, n in largest_first(moved.prefixes).items()))
        for key, version_id in moved.samples:
            version = "" if version_id is None else f" (version {visible(version_id)})"
            yield from layout.listed("", [shorten(f"  {visible(key)}{version}", layout.room)])
    if not counts.moves:
        yield from layout.listed("Objects", ["no object is opened or closed to anybody"])


def _audiences(counts: Mapping[str, int]) -> Iterator[str]:
    for text, number in list(largest_first(counts).items())[:MOST]:
        words = text if text == OTHERS else words_of(Audience.parse(text))
        yield f"{visible(words)}: {counted(number, 'object')}"
    if (more := len(counts) - MOST) > 0:
        yield f"and {more:,} more"


def _unpredictable(counts: WhatIfCounts) -> Iterator[str]:
    if not counts.unpredictable:
        return
    before = f", {counts.unknown_before:,} of them unknown already" if counts.unknown_before else ""
    yield f"{counted(counts.unpredictable, 'object')}{before}"
    for cause, number in largest_first(counts.causes).items():
        yield f"{counted(number, 'object')}: {_cause(cause)}"


def _cause(text: str) -> str:
    try:
        (sentence,) = sentences_of([Reason.parse(text)], ReasonGroup.LEAVES_OPEN)
    except ValueError:
        return visible(text)
    return sentence


def _result(counts: WhatIfCounts) -> str:
    opened = f"{counted(counts.wider, 'object')} opened to somebody" if counts.wider else "no new exposure"
    closed = f"{counted(counts.narrower, 'object')} closed to somebody"
    unsure = f", {counted(counts.unpredictable, 'object')} not predictable" if counts.unpredictable else ""
    return f"{opened}, {closed}{unsure}, of {counted(counts.objects, 'object')}"
