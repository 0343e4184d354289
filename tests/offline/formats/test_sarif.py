"""A policy file's results as SARIF: each at the lines of its statement, in the form that the standard asks for."""

from __future__ import annotations

import json
from typing import Any, Final

from auditor.model.access import Audience, ObjectAccess, Reason, ReasonCode, Verdict
from auditor.offline.formats.sarif import as_sarif
from auditor.offline.what_if_report import WhatIfCounts, change_of
from auditor.verdict.policy_text import StatementLines

MEMBERS: Final[dict[str, dict[str, Any]]] = {
    "log": {"$schema": str, "version": str, "runs": ["run"]},
    "run": {"tool": "tool", "results": ["result"], "columnKind": str},
    "tool": {"driver": "driver"},
    "driver": {"name": str, "version": str, "rules": ["rule"]},
    "rule": {"id": str, "shortDescription": "message", "defaultConfiguration": "configuration"},
    "configuration": {"level": str},
    "message": {"text": str},
    "result": {
        "ruleId": str,
        "level": str,
        "message": "message",
        "locations": ["location"],
        "partialFingerprints": dict,
    },
    "location": {"physicalLocation": "physicalLocation"},
    "physicalLocation": {"artifactLocation": "artifactLocation", "region": "region"},
    "artifactLocation": {"uri": str},
    "region": {"startLine": int, "endLine": int},
}
"""The members of SARIF 2.1.0's objects that we write, with their types; all but endLine are always there. The standard
allows no member that it does not name.
"""
LEVELS: Final = {"none", "note", "warning", "error"}
PRIVATE = ObjectAccess(Verdict.PRIVATE)
ANYONE = (Audience.parse("anyone"),)
LINES = [StatementLines("Website", 4, 8), StatementLines("#2", 9, 9)]


def check(kind: str, value: Any) -> None:
    """Check an object of SARIF and all that it holds."""
    assert isinstance(value, dict)
    assert MEMBERS[kind].keys() >= value.keys() >= MEMBERS[kind].keys() - {"endLine"}
    for name, inner in value.items():
        wanted = MEMBERS[kind][name]
        if isinstance(wanted, list):
            assert isinstance(inner, list)
            for one in inner:
                check(wanted[0], one)
        elif isinstance(wanted, str):
            check(wanted, inner)
        else:
            assert type(inner) is wanted


def log(*changes: tuple[str, ObjectAccess, ObjectAccess], file: str = "policies/a.json") -> dict[str, Any]:
    counts = WhatIfCounts()
    for key, before, after in changes:
        counts.add(key, None, change_of(before, after))
    made = as_sarif(counts, file, LINES)
    check("log", made)
    assert json.loads(json.dumps(made)) == made
    (run,) = made["runs"]
    rules = {rule["id"] for rule in run["tool"]["driver"]["rules"]}
    assert {result["ruleId"] for result in run["results"]} <= rules
    assert {result["level"] for result in run["results"]} <= LEVELS
    return made


def shown(made: dict[str, Any]) -> list[tuple[str, str, int, str]]:
    """Rule, level, first line and words of each result."""
    return [
        (
            result["ruleId"],
            result["level"],
            result["locations"][0]["physicalLocation"]["region"]["startLine"],
            result["message"]["text"],
        )
        for result in made["runs"][0]["results"]
    ]


def test_each_result_is_at_its_statement() -> None:
    website = ObjectAccess(Verdict.EXPOSED, ANYONE, (Reason(ReasonCode.POLICY_ALLOW, "Website"),))
    denied = ObjectAccess(Verdict.MASKED, (), (Reason(ReasonCode.POLICY_DENY, "#2"),))
    unread = ObjectAccess(Verdict.UNKNOWN, (), (Reason(ReasonCode.KEY_UNKNOWN, "s3:ExistingObjectTag/a"),))
    made = log(
        ("www/a", PRIVATE, website),
        ("www/b", PRIVATE, website),
        ("c", ObjectAccess(Verdict.EXPOSED, ANYONE), denied),
        ("d", PRIVATE, unread),
        ("e", PRIVATE, ObjectAccess(Verdict.EXPOSED, ANYONE)),
        ("f", ObjectAccess(Verdict.EXPOSED, ANYONE), PRIVATE),
    )
    assert shown(made) == [
        ("new-exposure", "error", 4, "statement Website opens www/a and 1 other object"),
        ("new-exposure", "error", 1, "the change as a whole opens 1 object"),
        ("not-predictable", "warning", 1, "1 object: the facts of the run do not show who could reach them"),
        ("access-lost", "note", 9, "statement #2 closes c"),
        ("access-lost", "note", 1, "the change as a whole closes 1 object"),
    ]


def test_hostile_text() -> None:
    after = ObjectAccess(Verdict.EXPOSED, ANYONE, (Reason(ReasonCode.POLICY_ALLOW, "\x1b[2J\ud800"),))
    made = log(("\u202ea\n", PRIVATE, after), file="a b/ü%.json")
    ((_, _, line, text),) = shown(made)
    assert (line, text) == (1, "statement \\x1b[2J\\ud800 opens \\u202ea\\n")
    location = made["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
    assert location == {"uri": "a%20b/%C3%BC%25.json"}
