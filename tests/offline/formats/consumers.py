"""Read each format as its consumer does: the counts that it finds, and the faults of its text.

CONSUMERS has each format of FORMATS; a new format needs its line here before the suite passes.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

from botocore.session import get_session
from botocore.validate import ParamValidator
from jsonschema import Draft202012Validator
from markdown_it import MarkdownIt
from ocsf_json_schema import OcsfJsonSchemaEmbedded, get_ocsf_schema

from auditor.model.summary import Summary

_FORMULAS = ("=", "+", "-", "@", "|", "%", "＝", "＋", "－", "＠")
_PLAIN = {"heading", "paragraph", "table", "thead", "tbody", "tr", "th", "td", "strong", "inline", "text", "softbreak"}
"""The markup of our own comment. Links, images, code, HTML and lists are none of it."""


@dataclass(frozen=True, slots=True)
class Counts:
    """The counts that a consumer finds. undecided: objects that could not be looked at. rules: undecided rules.
    findings: by severity.
    """

    undecided: int
    rules: int
    findings: Mapping[str, int]

    @classmethod
    def of(cls, summary: Summary) -> Counts:
        found = {severity: number for severity, number in summary.findings.items() if number}
        return cls(summary.coverage.undecided, len(summary.rules_undecided), found)


@dataclass(frozen=True, slots=True)
class Consumer:
    """counts: reads the counts. faults: what its reader would take for something else than text, or refuse."""

    counts: Callable[[str], Counts]
    faults: Callable[[str], list[str]]


def _words(text: str, label: str) -> dict[str, int]:
    """The names and numbers of a label of the table, over its lines."""
    lines = text.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith(f"{label} "))
    more = next(number for number, line in enumerate(lines[at + 1 :], at + 1) if not line.startswith(" "))
    cells = "   ".join(line[16:] for line in lines[at:more]).split("   ")
    return {name: int(number.replace(",", "")) for name, number in (cell.rsplit(" ", 1) for cell in cells)}


def _number(pattern: str, text: str) -> int:
    found = re.search(pattern, text)
    return int(found[1].replace(",", "")) if found else 0


def _table(text: str) -> Counts:
    sums = " ".join(text.partition("\n\n")[0].split())
    found = {name: number for name, number in _words(text, "Findings").items() if number}
    return Counts(_number(r"\+ ([\d,]+) that could", sums), _number(r"([\d,]+) rules? could not", sums), found)


def _unprintable(text: str) -> list[str]:
    return [ascii(line) for line in text.split("\n") if not line.isprintable()]


def _json(text: str) -> Counts:
    found = json.loads(text)
    findings = {name: number for name, number in found["findings"].items() if number}
    return Counts(found["coverage"]["undecided"], len(found["rules_undecided"]), findings)


def _unreadable(text: str) -> list[str]:
    """Faults of JSON in lines: a line that is no document, a character beyond ASCII."""
    faults = [] if text.isascii() else ["beyond ASCII"]
    for line in text.splitlines():
        try:
            json.loads(line)
        except ValueError as error:
            faults.append(str(error))
    return faults + _unprintable(text)


def _markdown(text: str) -> Counts:
    rows = dict(re.findall(r"\| (\w+) \| ([\d,]+) \|", text))
    findings = {name: int(rows[name]) for name in ("critical", "high", "medium", "low", "info") if int(rows[name])}
    undecided = _number(r"\+ ([\d,]+) that could not be looked at", text)
    return Counts(undecided, _number(r"; ([\d,]+) rules? undecided", text), findings)


def _markup(text: str) -> list[str]:
    """Markup that a reference renderer makes of the text, beyond that of our own headings and tables."""
    faults = _unprintable(text)
    for token in MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).parse(text):
        for one in (token, *(token.children or ())):
            kind = one.type.removesuffix("_open").removesuffix("_close")
            if kind not in _PLAIN and not (kind == "code_inline" and one.content == "summary.json"):
                faults.append(f"{one.type}: {one.content[:80]!r}")
    # GitHub makes links of these, beyond CommonMark.
    return faults + re.findall(r"(?:https?://|www\.|@\w)\S*", text)


def _rows(rows: Iterable[Mapping[str, Any]]) -> Counts:
    every = list(rows)
    kinds = Counter(row["kind"] for row in every)
    severities = Counter(row["severity"] for row in every if row["kind"] == "finding")
    return Counts(kinds["undecided"], kinds["rule-undecided"], severities)


def _cells(text: str) -> list[str]:
    """Cells that a spreadsheet would run, or that have hidden characters."""
    pandas = import_module("pandas")  # here: it takes long to import
    table = pandas.read_csv(io.StringIO(text, newline=""), dtype=str, keep_default_na=False)
    cells = [cell for column in table.columns for cell in table[column]]
    return [cell for cell in cells if cell.lstrip().startswith(_FORMULAS) or not cell.isprintable()]


def _ocsf(text: str) -> Counts:
    events = [json.loads(line) for line in text.splitlines()]
    severities: Counter[str] = Counter()
    undecided = rules = 0
    for event in events[1:]:
        if event["compliance"]["status"] == "Fail":
            severities[event["severity"].lower().replace("informational", "info")] += event["count"]
        elif event["message"].startswith("Rule "):
            rules += 1
        else:
            undecided += event["count"]
    return Counts(undecided, rules, severities)


@cache
def _ocsf_schema() -> Any:
    return Draft202012Validator(OcsfJsonSchemaEmbedded(get_ocsf_schema("1.5.0")).get_class_schema("compliance_finding"))


def _invalid_events(text: str) -> list[str]:
    events = [json.loads(line) for line in text.splitlines()]
    return _unreadable(text) + [error.message for one in events for error in _ocsf_schema().iter_errors(one)]


def _asff(text: str) -> Counts:
    severities: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    for one in json.loads(text):
        kind, number = (one["ProductFields"][f"s3-auditor/{name}"] for name in ("kind", "count"))
        counts[kind] += int(number)
        if kind == "finding":
            label = one["FindingProviderFields"]["Severity"]["Label"]
            severities[label.lower().replace("informational", "info")] += int(number)
    return Counts(counts["undecided"], counts["undecided-rule"], severities)


@cache
def _asff_shape() -> Any:
    return get_session().get_service_model("securityhub").operation_model("BatchImportFindings").input_shape


def _invalid_findings(text: str) -> list[str]:
    found = json.loads(text)
    report = ParamValidator().validate({"Findings": found}, _asff_shape())
    texts = [one[name] for one in found for name in ("Id", "Title", "Description", "GeneratorId")]
    return [
        *([report.generate_report()] if report.has_errors() else []),
        *([] if text.isascii() else ["beyond ASCII"]),
        *(ascii(one) for one in texts if not one.isprintable()),
    ]


CONSUMERS: Mapping[str, Consumer] = {
    "table": Consumer(_table, _unprintable),
    "json": Consumer(_json, _unreadable),
    "markdown": Consumer(_markdown, _markup),
    "jsonl": Consumer(lambda text: _rows(map(json.loads, text.splitlines())), _unreadable),
    "csv": Consumer(lambda text: _rows(csv.DictReader(io.StringIO(text, newline=""))), _cells),
    "ocsf": Consumer(_ocsf, _invalid_events),
    "asff": Consumer(_asff, _invalid_findings),
}
