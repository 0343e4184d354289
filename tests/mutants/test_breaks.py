"""Each break of the list has its text once, and tests that are there."""

from __future__ import annotations

from tests.mutants.breaks import LIST, breaks_of
from tests.support.paths import ROOT


def test_each_break_of_the_list_has_its_text_once_and_its_tests() -> None:
    breaks = breaks_of(LIST.read_text(encoding="utf-8"))
    assert len(breaks) == len(set(breaks)) == 60
    assert [str(one) for one in breaks if one.broken((ROOT / one.path).read_text(encoding="utf-8")) is None] == []
    named = {name.partition("::")[0] for one in breaks for name in one.tests.split()}
    assert [name for name in sorted(named) if not (ROOT / name).is_file()] == []
