"""The results of measurements: medians, tables, plots, the page and the gates."""

from __future__ import annotations

import importlib
import json
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar
from xml.etree import ElementTree

import pytest

from auditor.s3.engines import DEFAULT_ENGINE
from benchmarks import gates, page, tables
from benchmarks.child import JOBS
from benchmarks.clients import golang, invoked
from benchmarks.harness import Bench, Measured, Row, summarised
from benchmarks.launch import Server
from benchmarks.meter import Meter
from benchmarks.page import between
from benchmarks.parts import (
    PARTS,
    cold,
    compiled,
    engines,
    hashing,
    jobs,
    memory,
    shares,
    targets,
    throttled,
    transfers,
    verifying,
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


def test_a_figure_is_the_median_and_not_the_mean() -> None:
    assert summarised([1.0, 100.0, 2.0]) == {"median": 2.0, "least": 1.0, "most": 100.0}


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


def test_rows_that_belong_together_run_at_the_same_time() -> None:
    both = threading.Barrier(2, timeout=10)

    def run(server: Server, job: Mapping[str, Any], memory: int | None) -> dict[str, Any]:
        if job["job"] != "alone":
            both.wait()
        return {"job": job["job"]}

    rows = [Row(labels={"client": name}, job={"job": name}, with_next=name == "a") for name in ("a", "b", "alone")]
    found = Bench(RecordingServer("", "", ""), 2, False, run).measure(rows)
    assert [[run["job"] for run in measured.runs] for measured in found] == [["a"] * 2, ["b"] * 2, ["alone"] * 2]


def test_calls_are_compared_within_a_repetition() -> None:
    ours, theirs = row("direct", 50.0), row("bare aiohttp", 200.0)
    ours["each"], theirs["each"] = [50.0, 120.0, 90.0], [200.0, 400.0, 300.0]
    assert engines.ratio(ours, theirs) == 0.3
    assert engines.ratio(ours, None) is None


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


def test_a_program_that_does_not_compile_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "go").write_text('#!/bin/sh\n[ "$1" = mod ] || { echo "main.go:1: a fault" >&2; exit 1; }\n')
    (tmp_path / "go").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RuntimeError, match=r"does not compile:\nmain\.go:1: a fault"):
        golang.build(print)


def test_clients_in_go_have_a_line_of_the_table() -> None:
    rows = [row("direct", 25.0, "HEAD"), row("direct", 50.0), row(compiled.GO, 80.0, "HEAD"), row(compiled.GO, 100.0)]
    text = compiled.page({"rows": rows, "versions": {"Go": "go1", "service/s3": "v1"}})
    assert text.startswith("64 calls at once; Go go1, service/s3 v1.\n\n")
    assert "| AWS SDK for Go v2 | 80.0 | 12,500 | 100 | 10,000 |" in text


def test_a_table_has_numbers_on_the_right_with_commas() -> None:
    text = tables.table(("client", "us"), [("a", 1234567.0), ("b", 1.234)])
    assert text.splitlines() == ["| client | us |", "| --- | ---: |", "| a | 1,234,567 |", "| b | 1.23 |"]


@pytest.mark.parametrize(
    ("value", "text"), [(None, "-"), (3, "3"), (12345, "12,345"), (99.95, "100.0"), (0.5, "0.50"), ("x", "x")]
)
def test_a_figure_is_shown_as_exactly_as_it_is_known(value: Any, text: str) -> None:
    assert tables.shown(value) == text


def test_bars_are_as_long_as_their_values() -> None:
    root = ElementTree.fromstring(tables.bars("A & B", "us", [("<one>", 50.0), ("two", 100.0)]))
    lengths = [float(item.get("width", 0)) for item in root if item.tag.endswith("rect")][1:]
    assert lengths[0] == pytest.approx(lengths[1] / 2)
    assert "<one>" in [item.text for item in root]


def test_a_line_leaves_out_what_was_not_measured() -> None:
    series = {"a": [10.0, None, 1000.0], "b": [None, 50.0, None]}
    root = ElementTree.fromstring(tables.lines("t", "us", ["1", "16", "64"], series))
    points = [item.get("points", "") for item in root if item.tag.endswith("polyline")]
    assert [len(found.split()) for found in points] == [2, 1]
    assert sum(item.tag.endswith("circle") for item in root) == 3  # a value alone is seen, too


def test_text_goes_between_its_markers_and_nowhere_else() -> None:
    before = "a\n<!-- x -->\nold\n<!-- /x -->\nb\n<!-- y -->\n<!-- /y -->\n"
    after = between(before, "x", r"new \1")
    assert after == "a\n<!-- x -->\nnew \\1\n<!-- /x -->\nb\n<!-- y -->\n<!-- /y -->\n"
    assert between(after, "z", "lost") == after


def test_gates_are_met_missed_or_unmeasured() -> None:
    found = {gate.name: gate.met for gate in gates.evaluate({"engines": ENGINES_FOUND})}
    assert found["CPU per call: direct versus bare aiohttp"] is True
    assert found["CPU per call: the article's executor function versus direct"] is True
    assert found["CPU per call: the article's aioboto3 function versus direct"] is False
    assert found["CPU per call: the whole audit with direct versus bare aiohttp"] is False
    assert {gate.met for gate in gates.evaluate({})} == {None}


def test_ours_is_compared_with_the_best_of_the_articles_at_the_memory_where_it_does_worst() -> None:
    times = {(128, "article: serial"): 3000.0, (128, "article: executor"): 4000.0, (128, shares.KEPT): 1000.0}
    times |= {(512, "article: serial"): 1800.0, (512, "article: executor"): 700.0, (512, shares.KEPT): 100.0}
    rows = [{"memory": size, "client": client, "warm": {"median": ms}} for (size, client), ms in times.items()]
    article, anybody = (gate for gate in gates.evaluate({"shares": {"rows": rows}}) if gate.measured is not None)
    assert (article.measured, article.met) == (anybody.measured, False) == (3.0, False)

    rows.append({"memory": 512, "client": shares.BARE, "warm": {"median": 90.0}})
    article, anybody = (gate for gate in gates.evaluate({"shares": {"rows": rows}}) if gate.measured is not None)
    assert (article.measured, anybody.measured, anybody.met) == (3.0, 0.9, False)


def test_a_whole_audit_is_compared_warm_and_cold_where_it_does_worst() -> None:
    times = {(128, "article: executor"): (9000.0, 4000.0), (128, shares.AUDIT): (4500.0, 1000.0)}
    times |= {(512, "article: executor"): (2000.0, 900.0), (512, shares.AUDIT): (2200.0, 400.0)}
    times |= {(512, shares.FILED): (2300.0, 1000.0)}
    rows = [
        {"memory": size, "client": client, "cold": {"median": cold}, "warm": {"median": warm}}
        for (size, client), (cold, warm) in times.items()
    ]
    warm, filed, cold = (gate for gate in gates.evaluate({"shares": {"rows": rows}}) if gate.measured is not None)
    assert (warm.measured, warm.met, cold.measured, cold.met) == (2.25, False, 1.1, False)
    assert (filed.measured, filed.met) == (0.9, False)


def test_the_cpu_of_a_small_audit_is_judged() -> None:
    rows = [{"client": name, "cpu": {"median": cpu}} for name, cpu in (("boto3 itself", 0.3), (cold.COMMAND, 0.5))]
    (judged,) = (gate for gate in gates.evaluate({"cold": {"rows": rows}}) if gate.measured is not None)
    assert (judged.measured, judged.met) == (0.5, False)
    with pytest.raises(RuntimeError, match="audited 9 objects of 10"):
        cold.figures(Measured({"client": cold.COMMAND}, ({"audited": 9},)))


def test_targets_side_by_side_are_judged_turn_by_turn() -> None:
    each = {targets.TOGETHER: [1.0, 4.0, 1.0], targets.ONE_BY_ONE: [5.0, 8.0, 3.0]}
    found = {"rows": [{"targets": name, "each": seconds} for name, seconds in each.items()]}
    (judged,) = (gate for gate in gates.evaluate({"targets": found}) if gate.measured is not None)
    assert judged.measured == pytest.approx(1 / 3)
    assert judged.met is False
    run = {"audited": 1199, "buckets": 60, "laps": [{"wall": 1.0, "cpu": 1.0}], "peak": 50.0}
    with pytest.raises(RuntimeError, match="1199 objects of 60 buckets"):
        targets.figures(Measured({"targets": targets.TOGETHER}, (run,)))
    assert targets.figures(Measured({}, (run | {"audited": 1200},)))["each"] == [1.0]


def test_processes_are_compared_turn_by_turn_on_the_night_where_they_gain_least() -> None:
    one = {"laps": [{"wall": 9.0, "cpu": 8.0}, {"wall": 10.0, "cpu": 9.0}], "children": [[], []]}
    two = {"laps": [{"wall": 5.0, "cpu": 1.0}, {"wall": 8.0, "cpu": 0.5}], "children": [[3.0, 4.0], [4.5, 4.0]]}
    rows = [
        jobs.figures(Measured({"setting": setting, "processes": processes, "objects": 10}, (run, run)))
        for setting in jobs.OBJECTS
        for processes, run in ((1, one), (jobs.JOBS, two))
    ]
    assert [rows[1]["nights"][0][name]["median"] for name in ("seconds", "cpu", "path")] == [5.0, 8.0, 5.0]
    found = {"rows": rows}
    assert jobs.times(found, jobs.ALONE, 0, "seconds") == pytest.approx(1.8)
    judged = [gate for gate in gates.evaluate({"jobs": found}) if gate.measured is not None]
    assert [(round(gate.measured or 0, 3), gate.met) for gate in judged] == [(1.25, False), (1.25, False), (1.6, False)]
    assert "| 1.80 | 1.60 |" in jobs.page(found)


def test_each_invocation_of_a_function_is_a_new_request() -> None:
    """An event that comes twice under one request does nothing: such an invocation would be no measurement."""
    assert len({invoked.Context().aws_request_id for _ in range(3)}) == 3


def test_an_invocation_that_missed_objects_is_no_measurement() -> None:
    lap = {"wall": 1.0, "cpu": 1.0}
    with pytest.raises(RuntimeError, match="read 99 ACLs of 100"):
        shares.figures(Measured({"client": "x"}, ({"calls": 99, "laps": [lap, lap], "peak": 1.0},)))


def test_memory_is_compared_between_the_two_largest_buckets() -> None:
    peaks = {10_000: 60.0, 100_000: 80.0, 1_000_000: 96.0}
    rows = [{"engine": DEFAULT_ENGINE, "objects": size, "peak": {"median": peak}} for size, peak in peaks.items()]
    found = [
        (gate.measured, gate.met) for gate in gates.evaluate({"memory": {"rows": rows}}) if "memory at" in gate.name
    ]
    assert found == [(1.2, False), (96.0, True)]


def test_gate_of_verifying_is_of_dynamodb() -> None:
    rows = [{"ledger": name, "cpu": {"median": cpu}} for name, cpu in (("sqlite", 3.0), ("dynamodb", 0.9))]
    (judged,) = (gate for gate in gates.evaluate({"verifying": {"rows": rows}}) if gate.measured is not None)
    assert (judged.measured, judged.met) == (0.9, True)
    assert verifying.cpu({"rows": []}, "dynamodb") is None


def test_an_audit_that_missed_objects_is_no_measurement() -> None:
    with pytest.raises(RuntimeError, match="audited"):
        memory.figures(Measured({"engine": "x", "objects": 2}, ({"coverage": {"audited": 1}},)))


def test_hashers_that_do_not_agree_are_no_measurement() -> None:
    rows = [{"size": 1, "digest": "a"}, {"size": 2, "digest": "b"}, {"size": 1, "digest": "a"}]
    hashing.check(rows)
    with pytest.raises(RuntimeError, match="do not agree about 2 MB"):
        hashing.check([*rows, {"size": 2, "digest": "c"}])


def test_hashing_is_judged_by_its_worst_row() -> None:
    rows: list[dict[str, Any]] = [
        {"beside": {"median": 0.9}, "above": 4.0},
        {"above": None},
        {"beside": {"median": 1.1}, "above": 7.0},
        {"above": None},
    ]
    streams = [
        {"streams": number, "speed": {"median": speed}, "above": above}
        for number, speed, above in ((1, 25.0, 4.0), (4, 90.0, 40.0), ("auto", 80.0, 41.0))
    ]
    judged = {gate.name.split(",")[0]: gate for gate in gates.evaluate({"hashing": {"rows": rows, "streams": streams}})}
    per_cpu = judged["hashing: MB per CPU s"]
    assert (per_cpu.measured, per_cpu.met) == (0.9, False)
    assert judged["hashing: peak memory above idle"].measured == 41.0
    times = judged["hashing: four streams versus one"]
    assert (times.measured, times.met) == (3.6, True)


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


@pytest.mark.parametrize(("size", "name"), [(1_000, "1 KB"), (10_000_000, "10 MB"), (7, "7 B")])
def test_a_size_is_named(size: int, name: str) -> None:
    assert transfers.named(size) == name


def test_an_audit_is_judged_without_its_first_seconds_and_its_last() -> None:
    admitted = {"100": 900, "101": 0, "102": 500, "103": 500, "104": 500, "105": 490, "106": 470, "107": 3}
    refused = {"100": 400, "106": 40}
    found = throttled.settled({"admitted": {"unknown": admitted}, "refused": {"unknown": refused}}, 500)
    assert found == {"throughput": pytest.approx(0.96), "refused": pytest.approx(0.04)}


def test_an_audit_that_was_over_too_soon_is_not_judged() -> None:
    with pytest.raises(RuntimeError, match="before it had settled"):
        throttled.settled({"admitted": {"unknown": {"100": 5, "104": 5}}, "refused": {}}, 500)


def test_users_are_judged_without_the_guest_and_while_its_calls_are_answered() -> None:
    lone, late = [10_000] * 100, [90_000]
    seen = {
        "latencies": {
            "9": late,
            "10": lone,
            "11": lone,
            "12": late,
            "13": [11_000] * 100,
            "14": late,
            "15": lone,
            "16": late,
        },
        "refused": {"12": 1, "13": 2},
    }
    found = throttled.beside(seen, 12, 14, [13])
    assert found["p99_rise"] == pytest.approx(0.1)
    assert (found["p99_alone"], found["p99_during"], found["foreground_refused"]) == (10.0, 11.0, 0.02)


def test_a_percentile_is_a_value_that_was_measured() -> None:
    assert throttled.percentile(range(1, 101), 0.99) == 100
    assert throttled.percentile([5], 0.99) == 5


def test_the_worst_limit_speaks_for_the_guest() -> None:
    rows = [
        {"guest": True, "engine": DEFAULT_ENGINE, "max_rate": rate, "p99_rise": {"median": rise}}
        for rate, rise in (("100", 0.02), ("1000", 0.2), ("unlimited", 3.0))
    ]
    assert throttled.worst({"rows": rows}, "p99_rise", guest=True, capped=True) == 0.2
    assert throttled.worst({"rows": rows}, "p99_rise", guest=True) == 3.0


def test_refusals_by_chance_are_judged_by_the_calls_that_are_left() -> None:
    quiet = [{"speed": 1000.0, "lost": 0}, {"speed": 2000.0, "lost": 0}, {"speed": 1000.0, "lost": 0}]
    found = [{"speed": 350.0, "lost": 0}, {"speed": 650.0, "lost": 2}, {"speed": 400.0, "lost": 0}]
    results = {"rows": [], "chance": [throttled.chance(0.3, found, quiet)]}
    assert throttled.kept(results, 0.3) == pytest.approx(0.5)
    assert throttled.kept(results, 0.1) is None
    judged = {gate.name.partition(":")[0]: gate.met for gate in gates.evaluate({"throttled": results})}
    assert judged["30% of calls refused by chance"] is True
    assert "| 30% | 400 | 35.0% | 2 |" in throttled.page(results)


def test_short_runs_are_judged_by_the_time_that_they_take() -> None:
    quiet = [{"speed": 2000.0, "lost": 0}] * 3
    found = [{"speed": 1000.0, "lost": 0}, {"speed": 1600.0, "lost": 0}, {"speed": 250.0, "lost": 1}]
    results = {"rows": [], "short": [throttled.chance(0.1, found, quiet)]}
    assert throttled.longer(results, 0.1, "median") == pytest.approx(2.0)
    assert throttled.longer(results, 0.1, "least") == pytest.approx(8.0)
    judged = {gate.name: gate.met for gate in gates.evaluate({"throttled": results})}
    name = "10% of calls refused by chance, 5,000 objects: seconds, of the quiet ones"
    assert judged[f"{name}, median"] is True
    assert judged[f"{name}, slowest run"] is False
    assert "| 10% | 1,000 | 50.0% | 12.5% | 1 |" in throttled.page(results)


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


def test_the_gates_on_the_page_are_those_that_were_measured() -> None:
    judged = [gates.Gate("small", 1, 0.5), gates.Gate("large", 1, 2.0), gates.Gate("unknown", 1, None)]
    text = page.gate_table([gate.cells() for gate in judged])
    assert "| small | at most 1 | 0.5 |" in text
    assert "| large | at most 1 | 2 **not met** |" in text
    assert "unknown" not in text
    assert "Gates that are not measured here: 1;" in text
    assert "Not measured" not in page.gate_table([gate.cells() for gate in judged[:2]])


def test_every_part_has_its_place_on_the_page() -> None:
    text = (ROOT / "docs" / "performance.md").read_text()
    assert [name for name in (*PARTS, "gates") if between(text, name, "\0") == text] == []
