"""Put the facts of a bucket that were read now in the place of those that a run could not read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from auditor.model.bucket import BucketFacts
from auditor.model.object import Unread
from auditor.runs.bucket_file import BucketFile

_CALLER: Final = ("own_id", "account")
"""The facts that tell who asks, and not how the bucket is."""
_NAMES: Final = BucketFacts.__struct_fields__


def filled_facts(known: BucketFacts, now: BucketFacts) -> BucketFacts:
    """Return one state of the bucket: the facts that were read now, and those that only the run could read.

    known: the facts of the run. now: the facts that were read now, perhaps by another caller. An account that the run
    knew stays the caller's: the other facts were found by it.
    """
    values = {name: _newer(getattr(known, name), getattr(now, name)) for name in _NAMES}
    if any(_differ(getattr(known, name), getattr(now, name)) for name in _CALLER):
        values |= {name: getattr(known, name) for name in _CALLER}
    return replace(now, **{**values, "semantics": known.semantics, "key_policies": known.key_policies})


def changed_facts(known: Iterable[BucketFacts], facts: BucketFacts) -> list[str]:
    """Return the names of the facts that the run knew, and that are others now."""
    states = list(known)
    return [
        name
        for name in _NAMES
        if name not in (*_CALLER, "key_policies")
        and any(not has_unread(old := getattr(one, name)) and old != getattr(facts, name) for one in states)
    ]


def gained(file: BucketFile, facts: BucketFacts) -> bool:
    """True if a fact is known that was unread in the run, or may become known in the course of the fill."""
    if has_unread(facts.key_policies):
        return True
    return any(
        has_unread(old := getattr(one.facts, name)) and old != getattr(facts, name)
        for one in file.read
        for name in _NAMES
    )


def has_unread(value: Any) -> bool:
    """True if the fact, or a part of it, could not be read."""
    if isinstance(value, Unread):
        return True
    if isinstance(value, Mapping):
        return any(map(has_unread, value.values()))
    if isinstance(value, tuple):
        return any(map(has_unread, value))
    return isinstance(value, Struct) and any(has_unread(getattr(value, name)) for name in value.__struct_fields__)


def _newer(known: Any, now: Any) -> Any:
    return known if isinstance(now, Unread) and not isinstance(known, Unread) else now


def _differ(known: Any, now: Any) -> bool:
    return isinstance(known, str) and isinstance(now, str) and known != now
