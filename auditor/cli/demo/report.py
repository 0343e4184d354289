"""The text that the demo prints on stdout: at most 100 columns wide, about one screen, safe to print."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from auditor.cli.demo.bucket import BUCKET, Loaded
from auditor.cli.demo.compare import DemoResults, PlantedComparison, PlantedRow, hashing_of
from auditor.cli.demo.damage import DAMAGED, MOST_VERIFIED, VerifiedDamage
from auditor.cli.demo.files import Choice
from auditor.cli.demo.plants import DECOYS, NOT_PLANTED, PLANTED
from auditor.hashing.worker.counts import Counts
from auditor.model.access import told_verdicts
from auditor.model.summary import Summary
from auditor.reports.diff_text import numbers
from auditor.reports.highlights import ExposedObject
from auditor.reports.summary import completeness
from auditor.reports.table import COLUMNS, LEAST
from auditor.reports.text_table import TableLayout, labelled
from auditor.text import shorten, visible

_LABEL: Final = 12
_AUDIT: Final = "2 Audit"
_INDENT: Final = 4
_PROBLEMS: Final = {"found": 7, "rules": 16, "verdict": 9, "problem": 35}
_DAMAGES: Final = {"found": 7, "outcome": 21, "damage": 35}
"""Columns of the table of damaged objects, with their widths; _PROBLEMS has those of the table of planted problems. The
object key gets the rest of a line.
"""


def opening(engine: str) -> str:
    text = (
        "auditor audits every object of an S3 bucket: who can reach it, how it is protected, and whether"
        " its bytes are still what they were. This is all of it on an AWS inside this process (moto), with the engine"
        f" {engine}. No account is used, and nothing leaves this machine."
    )
    return textwrap.fill(text, _columns()) + "\n\n"


def loading(choice: Choice, loaded: Loaded, problems: int, seconds: float) -> str:
    size = loaded.size / (1024 * 1024)
    planted = [plant for plant in PLANTED if plant.key is not None]
    lines = [
        f"{len(choice.sources):,} {shorten(visible(choice.origin), 60)}",
        f"+ {len(planted)} objects with planted problems ({problems - len(planted)} more are settings of the bucket)",
        f"+ {len(DECOYS)} decoys, which look wrong and are not",
        f"= {loaded.objects:,} objects, {size:,.1f} MiB, in s3://{BUCKET}, {seconds:,.1f} s",
    ]
    if choice.left_out:
        lines.append(
            f"({choice.left_out:,} files left out: too many, too large, unreadable, or with an unprintable name)"
        )
    return _section("1 Load", lines)


def exposed(objects: Iterable[ExposedObject], *, begins: bool) -> str:
    """Return a line for each exposed object, as the audit finds it. begins: True for the first lines of the audit."""
    lines = [f"exposed: {visible(one.key)} ({', '.join(one.rules)})" for one in objects]
    return _section(_AUDIT if begins else "", lines)


def audited(summary: Summary) -> str:
    """Return the counts of the audit. If it found exposed objects, exposed() has begun its section."""
    coverage = summary.coverage
    calls = summary.calls.list + summary.calls.head + summary.calls.acl
    outcomes = f"{coverage.audited:,} audited + {coverage.vanished:,} vanished + {coverage.undecided:,} undecided"
    lines = [
        f"{coverage.listed:,} listed = {outcomes}: {completeness(summary)}, {calls:,} calls, {summary.seconds:,} s",
        f"who can reach them: {numbers(told_verdicts(summary.verdicts))}",
        f"findings: {numbers(summary.findings)}",
    ]
    return _section("" if summary.verdicts["exposed"] else _AUDIT, lines)


def comparing(comparison: PlantedComparison) -> str:
    """Return the table of the planted problems. Its first column says if the audit found the problem."""
    lines = [
        f"{_found(comparison)} on {comparison.clean:,} clean objects",
        *textwrap.wrap(f"not planted: {', '.join(NOT_PLANTED)}; this AWS and the demo's settings lack them", 80),
    ]
    return _section("3 Compare", lines) + _table(_PROBLEMS, map(_cells, comparison.rows))


def _found(comparison: PlantedComparison) -> str:
    alarms = len(comparison.false_alarms)
    return (
        f"{comparison.problems} of {len(comparison.rows)} planted problems found,"
        f" {alarms or 'no'} false alarm{'s' if alarms > 1 else ''}"
    )


def _cells(row: PlantedRow) -> tuple[str, ...]:
    plant = row.planted
    return (
        "MISSED" if row.missed else "yes",
        " ".join(plant.rules) or "-",
        plant.verdict.value if plant.verdict else "-",
        plant.description,
        plant.key or "the bucket",
    )


def _table(columns: Mapping[str, int], rows: Iterable[Sequence[str]]) -> str:
    """Return a table. columns: name and width of each column but the last, which is the object key."""
    lines = []
    for *cells, key in ((*columns, "key"), *rows):
        lines.append(("".join(f"{cell:<{size}}" for cell, size in zip(cells, columns.values(), strict=True)), key))
    return "".join(f"{line}\n" for line in TableLayout(_columns(), _INDENT).keyed("", lines, 0))


def hashing(summary: Summary, work: Counts, seconds: float) -> str:
    line = (
        f"{hashing_of(summary).queued:,} queued on SQS, {work.hashed:,} read and hashed by the worker,"
        f" digests in DynamoDB, {seconds:,.1f} s"
    )
    return _section("4 Hash", [line])


def verifying(verified: VerifiedDamage) -> str:
    """Return the table of the damaged objects. Its first column says if `auditor verify` named the object."""
    summary = verified.summary
    outcomes = ", ".join(f"{count:,} {name}" for name, count in summary.outcomes.items() if count)
    first = "the first " if sum(summary.outcomes.values()) == MOST_VERIFIED else ""
    lines = [
        "the bytes of two objects changed, but no size, date or ETag; one object was deleted",
        f"{first}{summary.read.objects:,} objects read again: {outcomes}, {summary.seconds:,.1f} s",
    ]
    rows = [
        ("yes" if verified.found(damage) else "MISSED", damage.outcome.value, damage.description, damage.key)
        for damage in DAMAGED
    ]
    return _section("5 Verify", lines) + _table(_DAMAGES, rows)


def closing(seen: DemoResults, seconds: float, *, right: bool) -> str:
    """Return the last lines: the result, and where the report is. right: True if all results are as expected."""
    folder, objects = seen.audited.out, seen.audited.coverage.listed
    named = sum(map(seen.verified.found, DAMAGED))
    lines = [
        *([] if right else [("Result", "NOT AS EXPECTED: stderr says why")]),
        ("Result" if right else "", f"{_found(seen.comparison)}, {seen.work.hashed:,} of {objects:,} objects hashed,"),
        ("", f"{named} of {len(DAMAGED)} damaged or lost objects named, {seconds:,.0f} s in all"),
        ("Report", visible(str(Path(folder) / "report.html"))),
        ("Run folder", visible(folder)),
        ("Next", "a bucket of yours; it is only ever read, with your own credentials:"),
        ("", next_command()),
        ("", f"{command()} audit s3://my-bucket --ledger sqlite:digests.db --hash"),
    ]
    # Users copy the paths: they are never cut.
    return "\n" + "".join(f"{labelled(label, text, _LABEL)}\n" for label, text in lines)


def next_command() -> str:
    """Return the command that audits a bucket of the user's: that of `make` in the project's folder, else auditor's."""
    makefile = Path(__file__).parents[3] / "Makefile"
    at_hand = makefile.is_file() and makefile.parent == Path.cwd()
    return f"{'make run BUCKET=' if at_hand else f'{command()} audit '}s3://my-bucket"


def command() -> str:
    """Return `auditor` as the user has to type it here: the name if the shell finds it, else the path."""
    here = os.path.relpath(Path(sys.executable).parent / "auditor")
    return "auditor" if shutil.which("auditor") or here.startswith("..") else here


def _columns() -> int:
    """Return the terminal's width, but no less than LEAST and no more than COLUMNS."""
    width = shutil.get_terminal_size((COLUMNS, 24)).columns if sys.stdout.isatty() else COLUMNS
    return max(LEAST, min(COLUMNS, width))


def _section(label: str, lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in TableLayout(_columns(), _LABEL).listed(label, lines))
