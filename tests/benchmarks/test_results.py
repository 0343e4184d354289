"""The results of measurements: tables, plots and the page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from benchmarks import page
from benchmarks.page import between
from benchmarks.parts import PARTS, engines
from tests.support.paths import ROOT


def row(client: str, cpu: float, operation: str = "both", concurrency: Any = 64, **more: Any) -> dict[str, Any]:
    return {
        "client": client,
        "operation": operation,
        "concurrency": concurrency,
        "cpu": {"median": cpu, "least": cpu, "most": cpu},
        "each": [cpu, cpu, cpu],
        "rate": {"median": 1e6 / cpu, "least": 0, "most": 0},
        "server_cpu": {"median": 20.0, "least": 0, "most": 0},
        "busy": 0.5,
        "peak": 60,
        **more,
    }


ENGINES_FOUND = {
    "rows": [
        row("direct", 50.0),
        row("bare aiohttp", 200.0),
        row("floor", 15.0),
        row("article: executor", 1900.0, concurrency="as written"),
        row("article: aioboto3", 500.0, concurrency="as written"),
        row("whole audit: direct", 150.0),
    ]
}


def test_the_command_writes_page_plots_and_data(tmp_path: Path) -> None:
    template = tmp_path / "template.md"
    template.write_text("by hand\n<!-- gates -->\n<!-- /gates -->\n<!-- engines -->\n<!-- /engines -->\n")
    machine = {"CPU": "One CPU", "cores": "2", "memory": "4 GiB", "system": "Linux 6", "Python": "3.13.0"}
    results = {"engines": {"machine": machine, "date": "2026-01-02", "repeat": 5, "quick": False, **ENGINES_FOUND}}
    out = tmp_path / "docs"
    page.save(out, template, results, "the gates")
    text = (out / "performance.md").read_text()
    assert text.startswith("by hand\n<!-- gates -->\nthe gates\n")
    assert "Measured 2026-01-02, 5 times, medians, on One CPU, 2 cores" in text
    assert "| direct | both | 64 | 50.0 |" in text
    assert page.load(out) == json.loads(json.dumps(results))
    for name in engines.PART.plots(results["engines"]):
        ElementTree.parse(out / "performance" / name)


def test_every_part_has_its_place_on_the_page() -> None:
    text = (ROOT / "docs" / "performance.md").read_text()
    assert [name for name in (*PARTS, "gates") if between(text, name, "\0") == text] == []
