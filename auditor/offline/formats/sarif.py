"""Write the result of a what-if as SARIF 2.1.0: each statement of the policy file that opens or closes objects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

from auditor.model.access import Reason
from auditor.model.version import VERSION
from auditor.offline.what_if_report import MovedObjects, WhatIfCounts
from auditor.text import counted, visible
from auditor.verdict.policy_text import StatementLines

SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"

_RULES: Final = {
    "new-exposure": ("error", "The change opens objects to somebody who cannot reach them today."),
    "not-predictable": ("warning", "The facts of the run do not show who could reach some objects."),
    "access-lost": ("note", "The change closes objects to somebody who can reach them today."),
}
"""The ID of each rule, with the level of its results and its description."""


def as_sarif(counts: WhatIfCounts, file: str, statements: Sequence[StatementLines]) -> dict[str, Any]:
    """Return the SARIF log of a change that puts a new bucket policy in force.

    file: path of the policy's file, relative to the directory of the sources. statements: the lines of the policy's
    statements. A result that no single statement causes is at the first line.
    """
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": {"name": "auditor what-if", "version": VERSION, "rules": list(_rules())}},
                "columnKind": "unicodeCodePoints",
                "results": list(_results(counts, quote(file), {one.name: one for one in reversed(statements)})),
            }
        ],
    }


def _rules() -> Iterator[dict[str, Any]]:
    for name, (level, text) in _RULES.items():
        yield {"id": name, "shortDescription": {"text": text}, "defaultConfiguration": {"level": level}}


def _results(counts: WhatIfCounts, file: str, lines: Mapping[str, StatementLines]) -> Iterator[dict[str, Any]]:
    yield from _of_statements("new-exposure", "opens", counts.opened_by, file, lines)
    if counts.unpredictable:
        text = f"{counted(counts.unpredictable, 'object')}: the facts of the run do not show who could reach them"
        yield _result("not-predictable", text, file, None)
    yield from _of_statements("access-lost", "closes", counts.closed_by, file, lines)


def _of_statements(
    rule: str, verb: str, moved: Mapping[Reason | None, MovedObjects], file: str, lines: Mapping[str, StatementLines]
) -> Iterator[dict[str, Any]]:
    """Yield a result for each statement that opens or closes objects, and at the end one for all objects that the
    change opens or closes without a statement.
    """
    for reason, objects in moved.items():
        if reason is not None:
            name = reason.cause or "?"
            yield _result(rule, f"statement {visible(name)} {verb} {_named(objects)}", file, lines.get(name))
    if (others := moved.get(None)) is not None:
        yield _result(rule, f"the change as a whole {verb} {counted(others.objects, 'object')}", file, None)


def _named(moved: MovedObjects) -> str:
    (key, _), more = moved.samples[0], moved.objects - 1
    return f"{visible(key)} and {counted(more, 'other object')}" if more else visible(key)


def _result(rule: str, text: str, file: str, place: StatementLines | None) -> dict[str, Any]:
    region = {"startLine": 1} if place is None else {"startLine": place.first, "endLine": place.last}
    location = {"artifactLocation": {"uri": file}, "region": region}
    return {
        "ruleId": rule,
        "level": _RULES[rule][0],
        "message": {"text": text},
        "locations": [{"physicalLocation": location}],
        "partialFingerprints": {"statement/v1": f"{rule} {'' if place is None else place.name}"},
    }
