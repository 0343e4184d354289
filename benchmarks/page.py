"""Write the results into the page, between markers; the rest of the page is written by hand."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from benchmarks.parts import PARTS
from benchmarks.tables import table

FOLDER: Final = "performance"


def results_file(out: Path) -> Path:
    return out / FOLDER / "results.json"


def load(out: Path) -> dict[str, Any]:
    """The results by part, with the machine's description; empty without results."""
    path = results_file(out)
    found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return found


def between(page: str, marker: str, text: str) -> str:
    """Replace the text between `<!-- marker -->` and `<!-- /marker -->`; a page without them is returned unchanged."""
    pattern = re.compile(rf"(<!-- {re.escape(marker)} -->\n).*?(<!-- /{re.escape(marker)} -->)", re.DOTALL)
    return pattern.sub(lambda found: f"{found[1]}{text}\n{found[2]}", page)


def written(page: str, results: Mapping[str, Any], gates: str) -> str:
    """The page with the results of every part and of the gates."""
    for name, part in PARTS.items():
        if name in results:
            page = between(page, name, f"{conditions(results[name])}\n\n{part.page(results[name])}")
    return between(page, "gates", gates)


def conditions(found: Mapping[str, Any]) -> str:
    machine = found["machine"]
    cpu, cores = machine["CPU"], machine["cores"]
    times = "once" if found["repeat"] == 1 else f"{found['repeat']} times, medians"
    quick = " The quick run: fewer calls." if found["quick"] else ""
    return f"Measured {found['date']}, {times}, on {cpu}, {cores} cores.{quick}"


def save(out: Path, template: Path, results: Mapping[str, Any], gates: str) -> None:
    """Write results.json, the plots and the page below `out`."""
    folder = out / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    results_file(out).write_text(json.dumps(results, indent=1) + "\n")
    for name, part in PARTS.items():
        if name in results:
            for file, svg in part.plots(results[name]).items():
                (folder / file).write_text(svg)
    target = out / "performance.md"
    text = target.read_text() if target.exists() else template.read_text()
    target.write_text(written(text, results, gates))


def gate_table(rows: list[tuple[str, str, str, str]]) -> str:
    """The gates that were measured, those that are not met in bold, and how many others there are."""
    judged = [(*row[:2], row[2] if row[3] == "met" else f"{row[2]} {row[3]}") for row in rows if row[2] != "-"]
    rest = f"\n\nGates that are not measured here: {len(rows) - len(judged)}; `python -m benchmarks.gates` names them."
    return table(("what must hold", "limit", "measured"), judged) + (rest if len(judged) < len(rows) else "")
