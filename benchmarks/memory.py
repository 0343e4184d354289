"""Peak memory of an audit, for a bucket and for one ten times as large: `python -m benchmarks.memory`.

Both are computed buckets of a stub server in a process of its own; the audit is a process too, as a user starts it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from auditor.engines import DEFAULT_ENGINE, ENGINES

ROOT: Final = Path(__file__).parents[1]
SIZES: Final = (10_000, 100_000)
QUICK: Final = (2_000, 20_000)
LIMIT: Final = 1.2
"""How many times as much memory the larger bucket may take."""

CREDENTIALS: Final = {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
    "NO_PROXY": "127.0.0.1",
}


@dataclass(frozen=True, slots=True)
class Measured:
    """One audit. peak: MiB of resident memory. cpu, seconds: of the audit's process alone."""

    engine: str
    objects: int
    calls: int
    peak: float
    cpu: float
    seconds: float


@contextmanager
def stub(objects: int) -> Iterator[str]:
    """The URL of a stub with so many objects, in a process of its own."""
    command = [sys.executable, "-m", "tests.servers.stub", "--objects", str(objects)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            yield server.stdout.readline().strip()
        finally:
            server.terminate()


def measure(engine: str, objects: int, concurrency: str) -> Measured:
    """Audit once; raises RuntimeError when the audit did not see every object."""
    with stub(objects) as url, tempfile.TemporaryDirectory() as out:
        command = [
            *(sys.executable, "-m", "auditor", "audit", "s3://audited", "--endpoint-url", url, "--out", out),
            *("--engine", engine, "--concurrency", concurrency, "--max-rate", "unlimited"),
            *("--format", "json", "--fail-on", "never"),
        ]
        with subprocess.Popen(command, cwd=ROOT, env={**os.environ, **CREDENTIALS}, stdout=subprocess.PIPE) as child:
            assert child.stdout is not None
            printed = child.stdout.read()
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise RuntimeError(f"the audit of {objects} objects ended with {child.returncode}")
    summary = json.loads(printed)
    if summary["coverage"]["audited"] != objects:
        raise RuntimeError(f"the audit saw {summary['coverage']} of {objects} objects")
    calls = sum(summary["calls"][kind] for kind in ("list", "acl", "head"))
    cpu = usage.ru_utime + usage.ru_stime
    return Measured(engine, objects, calls, usage.ru_maxrss / 1024, cpu, summary["seconds"])


def show(measured: Measured) -> None:
    print(
        f"{measured.engine:<10} {measured.objects:>9,} {measured.calls:>9,} {measured.peak:>9.1f}"
        f" {measured.cpu:>9.1f} {1000 * measured.cpu / measured.calls:>11.2f} {measured.seconds:>9.1f}"
        f" {measured.calls / measured.seconds:>9,.0f}",
        flush=True,
    )


def compare(engine: str, sizes: Sequence[int], concurrency: str) -> float:
    """The larger bucket's peak as a multiple of the smaller one's."""
    peaks = []
    for size in sizes:
        measured = measure(engine, size, concurrency)
        show(measured)
        peaks.append(measured.peak)
    ratio = peaks[1] / peaks[0]
    print(f"{engine:<10} peak memory x {ratio:.3f} (limit {LIMIT})", flush=True)
    return ratio


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--engine", choices=[*ENGINES, "all"], default=DEFAULT_ENGINE)
    parser.add_argument("--concurrency", default="auto", help="as of `auditor audit` (auto)")
    parser.add_argument("--quick", action="store_true", help="a fifth of the objects")
    options = parser.parse_args()
    print(
        f"{'engine':<10} {'objects':>9} {'calls':>9} {'peak MiB':>9} {'CPU s':>9} {'CPU ms/call':>11}"
        f" {'seconds':>9} {'calls/s':>9}",
        flush=True,
    )
    engines = ENGINES if options.engine == "all" else [options.engine]
    ratios = [compare(engine, QUICK if options.quick else SIZES, options.concurrency) for engine in engines]
    return int(max(ratios) > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
