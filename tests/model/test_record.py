"""Records compare, hash and can be replaced like any dataclass; nothing may be added to them."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from auditor.model.object import Acl, DigestSources, Evidence, Grant, Head, ObjectRef
from auditor.model.record import record


@record()
class Point:
    x: int
    y: int = 0


@record(kw_only=True)
class Named:
    name: str


def test_equal_records_are_one_in_a_set() -> None:
    assert len({Point(1), Point(1, 0), Point(2)}) == 2
    acls = {Acl("o", (Grant("g", "READ"),)) for _ in range(3)}
    assert len(acls) == 1


def test_records_of_two_kinds_are_never_equal() -> None:
    @record()
    class Other:
        x: int
        y: int = 0

    both: set[object] = {Point(1), Other(1)}
    assert len(both) == 2


def test_a_copy_with_a_change_leaves_the_first_as_it_was() -> None:
    first = Point(1, 2)
    assert (replace(first, y=3), first) == (Point(1, 3), Point(1, 2))


def test_evidence_with_digests_keeps_every_other_fact() -> None:
    facts = {field.name: field.name for field in fields(Evidence)}
    evidence = Evidence(**facts)  # type: ignore[arg-type]
    digests = DigestSources(recorded={"sha256": "00"})
    assert evidence.with_digests(digests) == replace(evidence, digests=digests)


def test_fields_are_kept_without_a_dict_and_no_other_can_be_set() -> None:
    assert [field.name for field in fields(Point)] == ["x", "y"]
    with pytest.raises(AttributeError):
        Point(1).z = 3  # type: ignore[attr-defined]


def test_named_fields_are_named() -> None:
    with pytest.raises(TypeError):
        Named("a")  # type: ignore[call-arg]


@pytest.mark.parametrize("kind", [Acl, Evidence, Grant, Head, ObjectRef])
def test_what_is_made_for_each_object_has_no_dict(kind: type) -> None:
    assert "__dict__" not in dir(kind)
    assert hasattr(kind, "__slots__")
