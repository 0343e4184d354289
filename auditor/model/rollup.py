"""The types of rollups.json: a run's findings, verdicts and undecided objects in few groups, by prefix and audience."""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, Self

from msgspec import Struct, field

from auditor.model.access import Verdict
from auditor.model.finding import Severity
from auditor.model.json_codec import Size, document, parse_document, typed
from auditor.model.target import Target

NAME: Final = "rollups.json"


class TrendNight(Struct, frozen=True):
    """One day of a trend, in UTC, with the counts of its last complete run; None if there was no such run."""

    day: str
    """The day, such as 2026-01-02."""
    run: str | None = None
    verdicts: Mapping[str, Size] | None = None
    """Number of objects by verdict."""
    findings: Mapping[str, Size] | None = None
    """Number of findings by severity."""
    undecided: Size | None = None
    """Number of objects with a fact that could not be read."""
    listed: Size | None = None
    """Number of listed objects."""
    excepted: Mapping[str, Size] | None = None
    """Number of objects by verdict that an exception covered."""


class GroupKind(StrEnum):
    """The kind of a group: whether it counts findings or objects, and by what they are grouped."""

    FINDING = "finding"
    """Findings of one rule, severity and audience."""
    VERDICT = "verdict"
    """Objects of one verdict that is not private, by their widest audience."""
    UNDECIDED = "undecided"
    """Objects with a fact that could not be read, by the first such fact."""


class Sample(Struct, frozen=True):
    """One object or finding of a group, as an example. key: None for a finding on the bucket. fingerprint: the
    finding's; None for an object.
    """

    key: str | None
    version_id: str | None = None
    grantee: str | None = None
    permission: str | None = None
    since: str | None = None
    fingerprint: str | None = None


class Group(Struct, frozen=True, kw_only=True):
    """Findings or objects that have a kind, a rule or verdict, an audience and a prefix in common. Each finding and
    each object is counted in exactly one group of its kind.
    """

    id: str
    """12 hex digits, which are the same in each run that has the group."""
    kind: GroupKind
    rule: str | None
    """ID of the rule; None unless the kind is finding."""
    verdict: Verdict | None
    """The verdict; None unless the kind is verdict."""
    severity: Severity | None
    """The severity of the findings; None unless the kind is finding."""
    audience: str | None
    """The widest audience, in the form of Audience.text; None if nobody gets in. For undecided objects: the API
    operation and the error code of the first fact that could not be read, with a space between the two."""
    prefix: str | None
    """The prefix of all keys of the group; None for findings on the bucket."""
    rest: bool
    """True if deeper prefixes have groups of their own. The group then has only the other keys below its prefix."""
    count: Size
    """Number of findings; for the other kinds, number of objects."""
    bytes: Size
    """Size of the objects. An object with two findings of a group counts twice."""
    new: Size | None
    """Number of the group's findings or objects that the last complete run of the target lacked; None if there is no
    run to compare with."""
    excepted: Size
    """Number of the group's findings or objects that an exception covers."""
    since: str | None
    """The oldest time since which a finding or object of the group is known, in ISO 8601 in UTC."""
    samples: tuple[Sample, ...] = ()
    """The first findings or objects of the group in key order, at most five."""


class Totals(Struct, frozen=True, kw_only=True):
    """The sums over all groups. They equal the counts of the run's summary."""

    verdicts: Mapping[str, Size]
    """Number of objects by verdict, without private objects."""
    findings: Mapping[str, Size]
    """Number of findings by severity, findings on the bucket included."""
    rules: Mapping[str, Size]
    """Number of findings by rule."""
    undecided: Size
    """Number of objects with a fact that could not be read."""
    new: Size | None
    """Number of findings, verdicts and undecided objects that are new; None if there is no run to compare with."""
    excepted: Size
    """Number of findings, verdicts and undecided objects that an exception covers."""


class FirstStep(Struct, frozen=True, kw_only=True):
    """A change that closes exposed objects, or that lets undecided ones be decided, with its effect."""

    change: str
    """The change in one phrase."""
    closes: Size
    """Number of exposed objects that are not exposed after this change and the changes before it. Objects that an
    exception covers are not counted."""
    of: Size
    """Number of objects that are exposed before all changes. Objects that an exception covers are not counted."""
    breaks: tuple[str, ...] = ()
    """The audiences of shared objects that lose access by the change; at most five."""
    intended: Size = 0
    """Number of objects that the change closes although an exception covers them: they are public by intent."""
    decides: Size = 0
    """Number of undecided objects whose missing fact could be read after the change."""
    how: str | None = None
    """Options of `auditor what-if` that predict, object by object, the effect of this change and the changes before it;
    None if there are none."""


class RollUps(Struct, frozen=True, kw_only=True):
    """The content of rollups.json."""

    run: str
    target: Target
    complete: bool
    """True if the run reached the end of its listing."""
    totals: Totals
    groups: tuple[Group, ...] = ()
    """The groups of findings, exposed and undecided objects, the worst group first."""
    first: tuple[FirstStep, ...] = field(default=())
    """The changes to make first: as few as possible that close as many objects as possible, in this order."""
    not_predicted: Size = 0
    """Number of exposed objects that `first` counts as left open without a prediction: the run keeps examples of a
    limited number of kinds of objects."""
    nights: tuple[TrendNight, ...] = ()
    """The trend: the days up to this run, at most thirty."""

    def to_json(self) -> bytes:
        """Return the file's bytes, with a line for each group."""
        value = document(self)
        groups, first, nights = value.pop("groups"), value.pop("first"), value.pop("nights")
        text = f'{json.dumps(value)[:-1]}, "groups": {_lines(groups)}, "first": {json.dumps(first)}'
        return f'{text}, "nights": {_lines(nights)}}}\n'.encode()

    @classmethod
    def from_json(cls, data: bytes) -> Self:
        """Make RollUps from the JSON that to_json() wrote. Raises JsonError for anything else."""
        return typed(cls, parse_document(data))


def _lines(values: list[Any]) -> str:
    """Return a JSON array with a line for each value."""
    return "[\n" + ",\n".join(map(json.dumps, values)) + "\n]"
