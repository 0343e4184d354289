"""The rules as text, and the page that is made of them."""

from __future__ import annotations

import json
import re

import pytest

from auditor.cli.main import main
from auditor.model.finding import Severity
from auditor.rules import RULES
from auditor.rules import docs as catalogue
from auditor.rules.base import SECTIONS
from tests.support.paths import ROOT

PAGE = ROOT / "docs" / "rules.md"
BY_ID = {rule.id: rule for rule in RULES}


def test_page_in_the_docs_is_what_the_rules_say() -> None:
    assert PAGE.read_text() == catalogue.as_markdown(RULES), "run `make docs`"


def test_table_has_one_line_a_rule_in_columns(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:3] for line in lines] == [[rule.id, rule.severity.value, rule.name] for rule in RULES]
    starts = {line.index(rule.title, len("O01  critical  ")) for line, rule in zip(lines, RULES, strict=True)}
    assert len(starts) == 1


def test_details_hold_the_whole_documentation() -> None:
    for rule in RULES:
        details = catalogue.as_details(rule)
        assert details.startswith(f"{rule.id} {rule.name} ({rule.severity.value})\n{rule.title}\n")
        assert rule.doc in details
        assert f"Reads: {', '.join(rule.reads)}\n" in details
        assert ("Options: " in details) == bool(rule.options)
    assert "Options: required (list) in [rules.M01] of auditor.toml" in catalogue.as_details(BY_ID["M01"])


def test_json_tells_everything_of_every_rule() -> None:
    listed = json.loads(catalogue.as_json(RULES))
    assert [entry["id"] for entry in listed] == [rule.id for rule in RULES]
    for entry, rule in zip(listed, RULES, strict=True):
        assert Severity(entry["severity"]) is rule.severity
        assert entry["title"] == rule.title
        assert entry["reads"] == list(rule.reads)
        assert all(entry[word.lower().replace(" ", "_")] for word in SECTIONS)
    assert {entry["scope"] for entry in listed if entry["id"][0] == "B"} == {"bucket"}
    assert {entry["scope"] for entry in listed if entry["id"][0] != "B"} == {"object"}
    with_options = {entry["id"]: entry["options"] for entry in listed if entry["options"]}
    assert with_options["M01"] == {"required": "list"}
    assert set(with_options) == {rule.id for rule in RULES if rule.options}


def test_rules_on_metadata_name_annotations_as_a_blind_spot() -> None:
    for rule in (one for one in RULES if one.id[0] == "M" or one.id == "O15"):
        assert "object annotations" in catalogue.sections(rule)["Blind to"], rule.id


def test_page_of_rules_that_are_not_built_names_none_that_is() -> None:
    rows = re.findall(r"^\|([^|]+)\|", (ROOT / "docs" / "rules-not-built.md").read_text(), re.MULTILINE)
    named = [number for row in rows if ", a part" not in row for number in re.findall(r"[A-Z][0-9]{2}", row)]
    assert len(set(named)) == len(named) > 20
    assert not set(named) & BY_ID.keys()
