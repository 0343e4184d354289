"""Whole audits for tests: started in this process or as a child, read back from their folder, and checked."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from auditor.aio.stop import Stop
from auditor.audit.audit_run import Audit
from auditor.config.resources import Resources
from auditor.config.settings import Settings
from auditor.ledger.base import Ledger
from auditor.model.access import Verdict
from auditor.model.finding import Severity
from auditor.model.rollup import RollUps
from auditor.model.summary import Summary
from auditor.model.target import Target
from auditor.reports.rollup import GROUPS, totals_of
from auditor.reports.summary import exit_code
from auditor.runs.segment import PART_LINES
from auditor.runs.stores.local import LocalStore
from tests.support.paths import ROOT
from tests.support.servers.clients import BUCKET
from tests.support.servers.stub import StubServer

Line = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Result:
    """The results of a run in its folder. code: the exit code for its summary under --fail-on high."""

    summary: dict[str, Any]
    folder: Path
    objects: list[Line] = field(default_factory=list)
    findings: list[Line] = field(default_factory=list)
    undecided: list[Line] = field(default_factory=list)

    @property
    def coverage(self) -> dict[str, int]:
        found: dict[str, int] = self.summary["coverage"]
        return found

    @property
    def code(self) -> int:
        return exit_code(Summary.from_dict(self.summary), Severity.HIGH)

    @property
    def undated(self) -> list[Line]:
        """The lines of the objects without `since`, which differs from run to run."""
        return without(self.objects, "since")

    def line(self, key: str) -> Line:
        (found,) = (line for line in self.objects if line["key"] == key)
        return found


def without(lines: list[Line], member: str) -> list[Line]:
    """Return the lines without a member."""
    return [{name: value for name, value in line.items() if name != member} for line in lines]


async def audit(
    stub: StubServer,
    out: Path,
    *,
    target: Target | None = None,
    stop: Stop | None = None,
    ledger: Ledger | None = None,
    resume: str | None = None,
    part_lines: int = PART_LINES,
    clock: Callable[[], float] = time.time,
    **settings: Any,
) -> Result:
    """Audit the stub's bucket into a folder below `out`, and check everything that must hold of any run."""
    told = Settings(**{"endpoint_url": stub.url, "out": str(out), "max_rate": None, "concurrency": 16, **settings})
    places = Resources(store=LocalStore(out), ledger=ledger)
    aim = target or Target(BUCKET, versions=told.versions)
    summary = await Audit(
        aim, told, places, Stop() if stop is None else stop, run_id=resume, part_lines=part_lines, clock=clock
    ).run()
    return check(read_back(summary.to_dict()))


def read_back(summary: dict[str, Any]) -> Result:
    """The lines of a summary's run folder."""
    folder = Path(summary["out"])
    lines = {kind: read_parts(folder, kind) for kind in ("objects", "findings", "undecided")}
    return Result(summary, folder, **lines)


def read_parts(folder: Path, kind: str) -> list[Line]:
    parts = sorted((folder / kind).glob("part-*.jsonl.gz"))
    return [json.loads(line) for part in parts for line in gzip.decompress(part.read_bytes()).splitlines()]


def check(result: Result) -> Result:
    """Assert the sums that a summary promises, and that it counts the lines."""
    summary, coverage = result.summary, result.coverage
    judged = coverage["audited"] + coverage["undecided"]
    assert coverage["listed"] == judged + coverage["vanished"]
    assert list(summary["verdicts"]) == [verdict.value for verdict in Verdict]
    assert sum(summary["verdicts"].values()) == judged
    if summary["hashing"] is not None:
        states = {name: number for name, number in summary["hashing"].items() if isinstance(number, int)}
        assert sorted(states) == ["hashed_now", "known", "pending", "queued", "unhashable"]
        assert sum(states.values()) == judged
    assert summary["complete"] is (summary["resume"] is None)
    assert sorted(summary["calls"]) == ["acl", "head", "list", "retried", "throttled"]
    _check_lines(result)
    assert json.loads((result.folder / "summary.json").read_text()) == summary
    assert (result.folder / "report.html").exists()
    _check_rollups(result)
    return result


def _check_rollups(result: Result) -> None:
    """Assert that the run's roll-ups add up to its summary."""
    summary = result.summary
    rollups = RollUps.from_json((result.folder / "rollups.json").read_bytes())
    totals = rollups.totals
    assert (rollups.run, rollups.complete) == (summary["run"], summary["complete"])
    assert totals == totals_of(rollups.groups)
    assert {**totals.verdicts, "private": summary["verdicts"]["private"]} == summary["verdicts"]
    assert (totals.findings, totals.rules) == (summary["findings"], summary["rules"])
    assert totals.undecided == result.coverage["undecided"]
    assert len(rollups.groups) <= GROUPS


def _check_lines(result: Result) -> None:
    summary, coverage = result.summary, result.coverage
    outcomes = Counter(line["outcome"] for line in result.objects)
    assert {name: outcomes[name] for name in ("audited", "vanished", "undecided")} == {
        name: coverage[name] for name in ("audited", "vanished", "undecided")
    }
    assert len(result.objects) == coverage["listed"]
    verdicts = Counter(line["verdict"] for line in result.objects if line["outcome"] != "vanished")
    assert {name: verdicts[name] for name in summary["verdicts"]} == summary["verdicts"]
    identities = [(line["key"], line["version_id"]) for line in result.objects]
    assert len(set(identities)) == len(identities)
    keys = [key.encode() for key, _ in identities]
    assert keys == sorted(keys)

    severities = Counter(line["severity"] for line in result.findings)
    assert {name: severities[name] for name in summary["findings"]} == summary["findings"]
    assert Counter(line["rule"] for line in result.findings) == summary["rules"]
    by_object: dict[tuple[str | None, str | None], set[str]] = {}
    for line in result.findings:
        by_object.setdefault((line["key"], line["version_id"]), set()).add(line["rule"])
    flagged = {(line["key"], line["version_id"]): set(line["rules"]) for line in result.objects if line["rules"]}
    by_object.pop((None, None), None)  # the bucket's own
    assert flagged == by_object

    open_ones = [(line["key"], line["version_id"]) for line in result.objects if line["outcome"] == "undecided"]
    assert [(line["key"], line["version_id"]) for line in result.undecided] == open_ones
    assert all(line["unread"] for line in result.undecided)
    unread = Counter((fact["action"], fact["code"]) for line in result.undecided for fact in line["unread"])
    assert {(item["action"], item["code"]): item["count"] for item in summary["unread"]} == dict(unread)


SMALL_PARTS: Final = """
import sys
from functools import partial
from auditor.audit import audit_run
from auditor.cli.main import main
from auditor.estate import start
start.Audit = partial(audit_run.Audit, part_lines=20)
audit_run.Division = partial(audit_run.Division, least=1)
sys.exit(main(sys.argv[1:]))
"""


def start(
    stub: StubServer, out: Path, *arguments: str, small_parts: bool = False, **environment: str
) -> subprocess.Popen[str]:
    """`python -m auditor audit` of the stub's bucket as a child that prints JSON. small_parts: of 20 lines."""
    return subprocess.Popen(
        [
            *(sys.executable, *(("-c", SMALL_PARTS) if small_parts else ("-m", "auditor"))),
            *("audit", f"s3://{BUCKET}", "--format", "json"),
            *("--endpoint-url", stub.url, "--out", str(out), *arguments),
        ],
        cwd=ROOT,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(child: subprocess.Popen[str], timeout: float = 60) -> tuple[int, list[Result], str]:
    """Wait for a child: exit code, its checked results, and stderr."""
    try:
        out, err = child.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        child.kill()
        child.communicate()
        raise
    told = [json.loads(line) for line in out.splitlines()]
    return child.returncode, [check(read_back(line)) for line in told if "failed" not in line], err


def checkpoint(out: Path) -> dict[str, Any] | None:
    """The checkpoint of the one run below `out`, which has one range; None before its first one."""
    for path in out.glob(f"bucket={BUCKET}/run=*/checkpoint/00000.json"):
        found: dict[str, Any] = json.loads(path.read_text())
        return found
    return None
