"""The results of measurements: medians, tables, plots, the page and the gates."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar
from xml.etree import ElementTree

import pytest

from benchmarks import gates, page
from benchmarks.child import JOBS
from benchmarks.clients import golang, invoked
from benchmarks.harness import Bench, Measured, Row
from benchmarks.launch import Server
from benchmarks.meter import Meter
from benchmarks.page import between
from benchmarks.parts import (
    PARTS,
    compiled,
    engines,
    hashing,
    throttled,
)
from tests.support.paths import ROOT


class RecordingServer(Server):
    """A server that notes its settings and serves nobody."""

    settings: ClassVar[list[dict[str, Any]]] = []

    def set(self, **fields: Any) -> None:
        self.settings.append(fields)


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


def test_rows_take_turns_and_one_that_is_dear_has_fewer() -> None:
    order: list[str] = []

    def run(server: Server, job: Mapping[str, Any], memory: int | None) -> dict[str, Any]:
        order.append(str(job["job"]))
        return {"turn": len(order)}

    bench = Bench(RecordingServer("", "", ""), 3, False, run)
    found = bench.measure(
        [
            Row(labels={"client": "a"}, job={"job": "a"}, server={"latency": 0.015}),
            Row(labels={"client": "b"}, job={"job": "b"}, most=1),
        ]
    )
    assert order == ["a", "b", "a", "a"]
    assert [len(measured.runs) for measured in found] == [3, 1]
    assert [fields["latency"] for fields in RecordingServer.settings] == [0.015, 0.0, 0.015, 0.015]


PROGRAM = """
import json, sys

job = json.loads(sys.stdin.readline())
assert (job["keys"][0], job["operations"]) == ("warehouse/exports/2026/day-00000/part-000000000.parquet", ["head"])
print(json.dumps({"Go": "go1"}), flush=True)
used = 100.0
for objects in map(int, sys.stdin):
    if objects > 1000:
        sys.exit(3)
    used += objects / 10
    print(json.dumps({"cpu": used}), flush=True)
"""


def test_a_program_is_measured_by_the_cpu_that_it_tells_without_its_start_and_warm_up() -> None:
    job: dict[str, Any] = {
        "program": [sys.executable, "-c", PROGRAM],
        "url": "",
        "authority": "",
        "operations": ["head"],
    }
    found = golang.calls(meter := Meter(), concurrency=64, objects=50, **job)
    assert found == {"calls": 50, "versions": {"Go": "go1"}}
    assert [lap.cpu for lap in meter.laps] == [pytest.approx(5.0)]
    with pytest.raises(RuntimeError, match="ended with 3"):
        golang.calls(Meter(), concurrency=64, objects=2000, **job)


@pytest.mark.parametrize("go", [None, "echo offline >&2; exit 1"])
def test_clients_in_go_are_left_out_where_go_or_its_modules_are_missing(
    go: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if go is not None:
        (tmp_path / "go").write_text(f"#!/bin/sh\n{go}\n")
        (tmp_path / "go").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    said: list[str] = []
    assert golang.build(said.append) is None
    assert len(said) == 1

    jobs_run: list[str] = []

    def run(server: Server, job: Mapping[str, Any], memory: int | None) -> dict[str, Any]:
        jobs_run.append(job["job"])
        laps = [{"cpu": 0.5, "wall": 0.25, "server": 0.1}]
        return {
            "laps": laps,
            "calls": 10_000,
            "peak": 9,
            "versions": {"obstore": "1"} if job["job"] == "obstore" else {},
        }

    text = compiled.page(compiled.measure(Bench(RecordingServer("", "", ""), 1, True, run)))
    assert (jobs_run.count("obstore"), "sdk-for-go" in jobs_run) == (1, False)
    assert text.startswith("64 calls at once; obstore 1. The AWS SDK for Go v2 is left out:")
    assert "| direct | 50.0 | 40,000 | 50.0 | 40,000 |" in text
    assert "| obstore | 50.0 | 40,000 | - | - |" in text


def test_gates_are_met_missed_or_unmeasured() -> None:
    found = {gate.name: gate.met for gate in gates.evaluate({"engines": ENGINES_FOUND})}
    assert found["CPU per call: direct versus bare aiohttp"] is True
    assert found["CPU per call: the article's executor function versus direct"] is True
    assert found["CPU per call: the article's aioboto3 function versus direct"] is False
    assert found["CPU per call: the whole audit with direct versus bare aiohttp"] is False
    assert {gate.met for gate in gates.evaluate({})} == {None}


def test_each_invocation_of_a_function_is_a_new_request() -> None:
    """An event that comes twice under one request does nothing: such an invocation would be no measurement."""
    assert len({invoked.Context().aws_request_id for _ in range(3)}) == 3


def test_hashers_that_do_not_agree_are_no_measurement() -> None:
    rows = [{"size": 1, "digest": "a"}, {"size": 2, "digest": "b"}, {"size": 1, "digest": "a"}]
    hashing.check(rows)
    with pytest.raises(RuntimeError, match="do not agree about 2 MB"):
        hashing.check([*rows, {"size": 2, "digest": "c"}])


def test_hashers_are_compared_within_a_repetition() -> None:
    """The machine was twice as slow from the second one on: medians of each by itself would say 0.7."""

    def of(hasher: str, *seconds: float) -> Measured:
        runs = tuple(
            {"laps": [{"cpu": one, "wall": one} for one in (9.0, cpu, cpu)], "peak": 50.0, "idle": 40.0, "digest": "d"}
            for cpu in seconds
        )
        return Measured({"memory": 512, "chunk": 1, "size": 100, "hasher": hasher}, runs)

    class Told(Bench):
        def measure(self, rows: Sequence[Row]) -> list[Measured]:
            return [of("ours", 1.0, 2.2, 2.0), of("article", 1.1, 2.0, 2.2)] if rows[0].memory else []

    results = hashing.measure(Told(Server("", "", ""), 3, True))
    assert results["rows"][0]["beside"] == {"median": 1.1, "least": 0.909, "most": 1.1}
    assert hashing.least_per_cpu(results) == 1.1
    assert hashing.page({**results, "streams": []}).endswith("| 1.10 |")


def test_an_audit_is_judged_without_its_first_seconds_and_its_last() -> None:
    admitted = {"100": 900, "101": 0, "102": 500, "103": 500, "104": 500, "105": 490, "106": 470, "107": 3}
    refused = {"100": 400, "106": 40}
    found = throttled.settled({"admitted": {"unknown": admitted}, "refused": {"unknown": refused}}, 500)
    assert found == {"throughput": pytest.approx(0.96), "refused": pytest.approx(0.04)}


def test_every_job_is_a_function() -> None:
    for name in JOBS.values():
        module, _, function = name.partition(":")
        assert callable(getattr(importlib.import_module(module), function))


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
