"""The tallies of ranges add up to the tally of the whole."""

from __future__ import annotations

import pytest
from msgspec.structs import fields

from auditor.model.access import Verdict
from auditor.runs.tally import AUDIENCES, OTHER, OTHERS, REASONS, Tally
from auditor.runs.tally_merge import add_tally


def filled(number: int) -> Tally:
    """A tally in which every field has something, different for each number."""
    tally = Tally()
    for place, field in enumerate(fields(Tally), number):
        value = getattr(tally, field.name)
        if isinstance(value, int):
            setattr(tally, field.name, min(place, 1) if field.name == "uncompared" else place)
        elif field.name == "audiences":
            value["exposed anyone"] = place
        else:
            for name in value or ("x", f"only {number}"):
                value[name] = place
    return tally


def test_every_field_is_added() -> None:
    total = Tally()
    parts = [filled(1), filled(5)]
    for one in parts:
        add_tally(total, one)
    for field in fields(Tally):
        found, added = getattr(total, field.name), [getattr(one, field.name) for one in parts]
        if field.name == "uncompared":
            assert found == 1
        elif isinstance(found, int):
            assert found == sum(added)
        else:
            how = min if field.name == "oldest" else sum
            assert found == {
                name: how([one[name] for one in added if name in one]) for name in {**added[0], **added[1]}
            }


@pytest.mark.parametrize("ranges", [2, 3])
def test_names_beyond_the_limits_count_as_others(ranges: int) -> None:
    total = Tally()
    for part in range(ranges):
        one = Tally()
        one.unread = {f"Head {part}-{number}": 1 for number in range(REASONS)}
        one.audiences = {f"{Verdict.SHARED.value} {part}-{number}": 1 for number in range(AUDIENCES)}
        add_tally(total, one)
    assert (len(total.unread), len(total.audiences)) == (REASONS + 1, AUDIENCES + 1)
    assert total.unread[OTHER] == (ranges - 1) * REASONS
    assert total.audiences[f"{Verdict.SHARED.value} {OTHERS}"] == (ranges - 1) * AUDIENCES
