"""A report names the first exposed and undecided objects, a limited number."""

from __future__ import annotations

from auditor.model.access import Verdict
from auditor.reports.highlights import EXPOSED, UNDECIDED, ExposedObject
from tests.support.samples.reports import denied, judged, shown_of


def test_exposed_object_without_a_finding_is_named() -> None:
    shown = shown_of(judged("a"), judged("b", verdict=Verdict.EXPOSED))
    assert shown.exposed == [ExposedObject("b", None, ())]


def test_only_the_first_ones_are_kept() -> None:
    shown = shown_of(
        *(judged(f"{number:04}", verdict=Verdict.EXPOSED) for number in range(EXPOSED + 5)),
        *(denied(f"x{number:04}") for number in range(UNDECIDED + 5)),
    )
    assert [line.key for line in shown.exposed] == [f"{number:04}" for number in range(EXPOSED)]
    assert len(shown.undecided) == UNDECIDED
