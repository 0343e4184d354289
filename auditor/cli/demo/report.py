"""The text that the demo prints on stdout: at most 80 columns wide, about one screen, safe to print."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from auditor.cli.audits import program
from auditor.cli.demo.bucket import BUCKET, Choice
from auditor.cli.demo.check import DAMAGED, DemoResults, PlantedComparison
from auditor.cli.demo.plants import DECOYS, NOT_PLANTED, PLANTED
from auditor.cli.progress import columns
from auditor.hashing.worker.counts import Counts
from auditor.model.access import told_verdicts
from auditor.model.summary import Summary
from auditor.offline.run_text import LEAST
from auditor.reports.summary import completeness
from auditor.reports.text_table import Column, TableLayout, labelled, text_table
from auditor.rules import RULES
from auditor.text import counted, enumerated, shorten, visible
from auditor.verify.summary import VerifySummary

COLUMNS: Final = 80
_LABEL: Final = 12
_WHY: Final = f"s3://{BUCKET}/board/minutes.txt"
"""An object whose verdict needs an explanation."""


def opening(engine: str) -> str:
    text = (
        "auditor looks at every object of an S3 bucket: who can reach it, how it is protected, and whether its bytes"
        f" are still what they were. This is all of it, with the engine {engine}, on an AWS inside this process (moto)."
        " No account is used, and nothing leaves this machine."
    )
    return textwrap.fill(text, _columns()) + "\n\n"


def loading(choice: Choice, size: int, seconds: float) -> str:
    """Return the numbers of the uploaded objects. size: the sum of their sizes in bytes."""
    planted = sum(plant.key is not None for plant in PLANTED)
    lines = [
        f"{len(choice.keys):,} objects, {size / (1024 * 1024):,.1f} MiB, in s3://{BUCKET}, {seconds:,.1f} s:",
        f"{len(choice.files):,} {shorten(visible(choice.origin), 50)},",
        f"{planted} with a planted problem ({len(PLANTED) - planted} more are settings of the bucket),",
        f"{len(DECOYS)} decoys, which look wrong and are not",
    ]
    if choice.left_out:
        lines.append("(some files are left out: too many, too large, unreadable, or with an unprintable name)")
    return _section("1 Load", lines)


def audited(summary: Summary, comparison: PlantedComparison) -> str:
    """Return the counts of the audit, and the table of the planted problems, each with the rules that found it."""
    coverage = summary.coverage
    outcomes = f"{coverage.audited:,} audited + {coverage.vanished:,} vanished + {coverage.undecided:,} undecided"
    lines = [
        f"{coverage.listed:,} listed = {outcomes}: {completeness(summary)}",
        f"{enumerated(told_verdicts(summary.verdicts))}, {summary.seconds:,} s",
        f"{_found(comparison)} on {comparison.clean:,} clean objects",
        f"(none is planted for {len(NOT_PLANTED)} of {len(RULES)} rules: the simulated AWS lacks what they need)",
    ]
    rows = [
        (
            plant.verdict.value if plant.verdict else "-",
            visible(plant.key or "the bucket"),
            plant.description,
            f"MISSED: {', '.join(missed)}" if missed else " ".join(plant.rules) or "its verdict",
        )
        for plant, missed in comparison.rows
    ]
    return _section("2 Audit", lines) + _table(("verdict", "object", "problem", "found by"), rows)


def _found(comparison: PlantedComparison) -> str:
    alarms = len(comparison.false_alarms)
    wrong = counted(alarms, "false alarm") if alarms else "no false alarm"
    return f"{comparison.found} of {len(comparison.rows)} planted problems found, {wrong}"


def _table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = text_table([Column(title, least=8) for title in titles], rows, _columns())
    return "\n" + "".join(f"{line}\n" for line in lines) + "\n"


def hashing(work: Counts, seconds: float) -> str:
    """Return the number of hashed objects. work: the worker's counts."""
    line = f"{work.hashed:,} queued on SQS, read and hashed, digests in DynamoDB, {seconds:,.1f} s"
    return _section("3 Hash", [line])


def verifying(verified: VerifySummary, lines: frozenset[str]) -> str:
    """Return the table of the damaged objects, each with its outcome. lines: as in DemoResults."""
    outcomes = ", ".join(f"{count:,} {name}" for name, count in verified.outcomes.items() if count)
    said = [
        "two objects rot, with size, date and ETag unchanged; one is deleted",
        f"{verified.read.objects:,} objects read again: {outcomes}, {verified.seconds:,.1f} s",
    ]
    rows = [(one.outcome if one.line in lines else "MISSED", one.key, one.description) for one in DAMAGED]
    return _section("4 Verify", said) + _table(("outcome", "object", "damage"), rows)


def closing(seen: DemoResults, seconds: float, *, right: bool) -> str:
    """Return the last lines: the result, where the report is, and the next commands. right: True if all results are as
    expected.
    """
    folder, auditor = seen.audited.out, program()
    lines = [
        *([] if right else [("Result", "NOT AS EXPECTED: stderr says why")]),
        ("Result" if right else "", f"{_found(seen.comparison)},"),
        ("", f"{seen.work.hashed:,} of {seen.objects:,} objects hashed,"),
        ("", f"{seen.named} of {len(DAMAGED)} damaged or lost objects named, {seconds:,.0f} s in all"),
        ("Report", visible(str(Path(folder, "report.html").absolute()))),
        ("Run folder", visible(folder)),
        ("Why", f"{auditor} explain {_WHY} --run {visible(folder)}"),
        ("Next", f"{next_command()}  # a bucket of yours: it is only ever read"),
        ("", f"{auditor} audit s3://my-bucket --ledger sqlite:digests.db --hash"),
    ]
    # Users copy the paths: they are never cut.
    return "".join(f"{labelled(label, text, _LABEL)}\n" for label, text in lines)


def next_command() -> str:
    """Return the command that audits a bucket of the user's: that of `make` in the project's folder, else auditor's."""
    makefile = Path(__file__).parents[3] / "Makefile"
    at_hand = makefile.is_file() and makefile.parent == Path.cwd()
    return f"{'make run BUCKET=' if at_hand else f'{program()} audit '}s3://my-bucket"


def _columns() -> int:
    """Return the terminal's width, but no less than LEAST and no more than COLUMNS."""
    return max(LEAST, min(COLUMNS, columns()))


def _section(label: str, lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in TableLayout(_columns(), _LABEL).listed(label, lines))
