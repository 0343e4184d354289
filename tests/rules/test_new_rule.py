"""`make rule` begins a rule that is complete: registered, with cases that it passes and every section of its page."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.rules.new_rule import begin, registered
from tests.support.paths import ROOT

CHECK = """
import sys
from auditor.rules import RULES
from auditor.rules.base import SECTIONS
from auditor.rules.docs import GROUPS, sections
from tests.rules.case_files import HALVES, read_cases

ids = [rule.id for rule in RULES]
assert ids == sorted(ids, key=lambda number: (list(GROUPS).index(number[0]), number)), ids
begun = [rule for rule in RULES if rule.id in sys.argv[1:]]
assert len(begun) == len(sys.argv) - 1
for rule in begun:
    assert tuple(sections(rule)) == SECTIONS and rule.title
    for half in HALVES:
        assert all(len(list(rule.check(*case.facts))) == len(case.hits) for case in read_cases(rule, half))
"""


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what the rules need."""
    tmp_path = tmp_path_factory.mktemp("checkout")
    without = shutil.ignore_patterns("__pycache__")
    for folder in ("auditor", "tests/rules"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=without)
    (tmp_path / "tests" / "__init__.py").touch()
    return tmp_path


def test_begun_rules_stand_in_the_list_and_pass_their_cases(checkout: Path) -> None:
    begun = [("o99", "access", "everyone_write"), ("e99", "encryption", "any_name"), ("b00", "bucket", "comes_first")]
    for number, group, name in begun:
        begin(checkout, number, group, name)
    ids = [number.upper() for number, _, _ in begun]
    subprocess.run([sys.executable, "-c", CHECK, *ids], cwd=checkout, check=True)
    ruff = Path(sys.executable).with_name("ruff")
    subprocess.run([ruff, "check", "--config", ROOT / "pyproject.toml", "auditor/rules"], cwd=checkout, check=True)


def test_a_long_import_goes_over_lines() -> None:
    listed = registered(f"from auditor.rules.keys import k01_{80 * 'x'}\n\n    k01_x.check,\n", "keys", "k07_y")
    assert listed == (
        f"from auditor.rules.keys import (\n    k01_{80 * 'x'},\n    k07_y,\n)\n\n    k01_x.check,\n    k07_y.check,\n"
    )


def test_a_wrong_argument_shows_how_to_write_it(checkout: Path) -> None:
    for given in (("o12", "doors", "any_name"), ("12", "access", "any_name"), ("o12", "access", "one")):
        with pytest.raises(ValueError, match="the groups are access, bucket, encryption"):
            begin(checkout, *given)
    with pytest.raises(ValueError, match="o02_everyone_read"):
        begin(checkout, "o02", "access", "any_name")
