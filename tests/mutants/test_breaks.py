"""The list of breaks, and what `make breaks` says of each."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutants.breaks import LIST, Break, breaks_of, fault_of, try_all
from tests.support.paths import ROOT

PRICE = "def price(pieces: int) -> int:\n    return pieces * 3 + 0 * pieces\n"
NOTICED = Break("shop.py", "each piece costs 4", "* 3", "* 4", "test_shop.py")
UNNOTICED = Break("shop.py", "pieces are added twice", "0 * pieces", "0 + pieces - pieces", "test_shop.py")
STALE = Break("shop.py", "each piece costs 6", "* 5", "* 6", "test_shop.py")
TWICE = Break("shop.py", "there are no pieces", "pieces", "0", "test_shop.py")
ELSEWHERE = Break("store.py", "nothing is sold", "sold", "kept", "test_shop.py")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(PRICE)
    (tmp_path / "test_shop.py").write_text(
        "from shop import price\n\ndef test_two() -> None:\n    assert price(2) == 6\n"
    )
    return tmp_path


def test_a_break_that_nothing_notices_and_a_stale_one_are_said(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert not try_all([NOTICED, UNNOTICED, STALE], copy)
    assert capsys.readouterr().out.splitlines() == [
        "noticed  shop.py: each piece costs 4  (test_shop.py)",
        "NOT NOTICED  shop.py: pieces are added twice  (test_shop.py)",
        "stale  shop.py: each piece costs 6  (test_shop.py)",
        "3 breaks: 1 noticed, 2 not",
    ]
    assert (copy / "shop.py").read_text() == PRICE


@pytest.mark.parametrize("one", [STALE, TWICE, ELSEWHERE], ids=["gone", "twice", "no such file"])
def test_a_break_whose_text_does_not_occur_once_is_stale(one: Break, copy: Path) -> None:
    assert fault_of(one, copy) == "stale"
    assert (copy / "shop.py").read_text() == PRICE


def test_tests_that_fail_without_any_break_prove_nothing(copy: Path) -> None:
    (copy / "shop.py").write_text(PRICE.replace("* 3", "* 2"))
    with pytest.raises(SystemExit, match=r"fails without any break.*test_shop\.py"):
        try_all([NOTICED], copy)


def test_each_break_of_the_list_has_its_text_once_and_its_tests() -> None:
    breaks = breaks_of(LIST.read_text(encoding="utf-8"))
    assert len(breaks) == len(set(breaks)) == 60
    assert [str(one) for one in breaks if one.broken((ROOT / one.path).read_text(encoding="utf-8")) is None] == []
    assert [
        name for one in breaks for name in one.tests.split() if not (ROOT / name.partition("::")[0]).is_file()
    ] == []
