"""The goldens: one input with every hostile key, and beside it the text that each format makes of it.

`make goldens` writes the expected texts anew, and `git diff` shows what changes for users. The input stays; `python -m
tests.offline.formats.golden_files --input` makes it again from the hostile run of the samples.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from auditor.model.json_codec import plain
from auditor.model.line_records import read_line
from auditor.model.rollup import RollUps
from auditor.model.run_lines import FindingLine, ObjectLine, UndecidedLine
from auditor.model.summary import Summary
from auditor.model.version import VERSION
from auditor.offline.formats import FORMATS
from auditor.offline.formats.base import FormatOptions
from tests.support.samples.hostile import hostile_run

L = TypeVar("L")
PLACE = Path(__file__).parent / "goldens"
INPUT = PLACE / "input"
OPTIONS = FormatOptions(account="111122223333", region="eu-central-1")
_VERSION = (f'"vendor_name":"s3-auditor","version":"{VERSION}"', '"vendor_name":"s3-auditor","version":"VERSION"')


class GoldenRun:
    """The run of the input."""

    def objects(self) -> Iterator[ObjectLine]:
        return self._lines("objects", ObjectLine)

    def findings(self) -> Iterator[FindingLine]:
        return self._lines("findings", FindingLine)

    def undecided(self) -> Iterator[UndecidedLine]:
        return self._lines("undecided", UndecidedLine)

    def rollups(self) -> RollUps:
        return RollUps.from_json((INPUT / "rollups.json").read_bytes())

    @property
    def summary(self) -> Summary:
        return Summary.from_dict(json.loads((INPUT / "summary.json").read_bytes()))

    @staticmethod
    def _lines(name: str, kind: type[L]) -> Iterator[L]:
        for line in (INPUT / f"{name}.jsonl").read_bytes().splitlines():
            yield read_line(kind, line)


def golden(name: str) -> Path:
    """The file with the expected text of a format."""
    return PLACE / f"expected.{name}"


def made(name: str) -> bytes:
    """The text that a format makes of the input, without the auditor's version."""
    run = GoldenRun()
    return "".join(FORMATS[name](run.summary, run, OPTIONS)).replace(*_VERSION).encode()


def write_input() -> None:
    summary, run = hostile_run()
    rollups = run.rollups()
    INPUT.mkdir(parents=True, exist_ok=True)
    (INPUT / "summary.json").write_text(json.dumps(summary.to_dict(), indent=1) + "\n", encoding="ascii")
    (INPUT / "rollups.json").write_bytes(rollups.to_json())
    kinds: dict[str, Iterable[Any]] = {
        "objects": run.object_records(),
        "findings": run.findings(),
        "undecided": run.undecided(),
    }
    for name, lines in kinds.items():
        text = "".join(json.dumps(plain(line)) + "\n" for line in lines)
        (INPUT / f"{name}.jsonl").write_text(text, encoding="ascii")


def main() -> None:
    if sys.argv[1:] == ["--input"]:
        write_input()
    for name in FORMATS:
        golden(name).write_bytes(made(name))


if __name__ == "__main__":
    main()
