"""Each break of the list has its text once, and tests that are there."""

from __future__ import annotations

from pathlib import Path

from tests.mutants.breaks import LIST, Break, breaks_of, fault_of
from tests.support.paths import ROOT


def test_a_break_whose_text_does_not_occur_once_is_stale(tmp_path: Path) -> None:
    shop = tmp_path / "shop.py"
    shop.write_text("def price(pieces: int) -> int:\n    return pieces * 3\n")
    before = shop.read_text()
    for path, was in (("shop.py", "* 5"), ("shop.py", "pieces"), ("store.py", "* 3")):
        assert fault_of(Break(path, "it costs more", was, "* 6", "test_shop.py"), tmp_path) == "stale"
        assert shop.read_text() == before


def test_each_break_of_the_list_has_its_text_once_and_its_tests() -> None:
    breaks = breaks_of(LIST.read_text(encoding="utf-8"))
    assert len(breaks) == len(set(breaks)) == 60
    assert [str(one) for one in breaks if one.broken((ROOT / one.path).read_text(encoding="utf-8")) is None] == []
    named = {name.partition("::")[0] for one in breaks for name in one.tests.split()}
    assert [name for name in sorted(named) if not (ROOT / name).is_file()] == []
