"""The AWS SDK for Go v2: a program of its own (benchmarks/sdk_for_go), which makes the calls and reports its CPU."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.meter import Meter
from benchmarks.server.objects import BUCKET, key_of

SOURCE: Final = Path(__file__).parents[1] / "sdk_for_go"
BUILT: Final = Path(__file__).parents[2] / ".build" / "sdk_for_go"
WARM_UP: Final = 2


def build(say: Callable[[str], None]) -> Path | None:
    """Build the program. None, after a line to `say`, where Go or a module of the SDK is missing.

    Raises RuntimeError if the program does not compile.
    """
    go = shutil.which("go")
    if go is None:
        say("Go is not installed")
        return None
    brought = _go(go, "mod", "download")
    if brought.returncode:
        say(f"the modules of the SDK for Go are missing: {brought.stderr.strip()[-500:]}")
        return None
    built = _go(go, "build", "-o", str(BUILT), ".")
    if built.returncode:
        raise RuntimeError(f"the program in {SOURCE.name} does not compile:\n{built.stderr[-2000:]}")
    return BUILT


def _go(go: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Go in the program's folder, without C and with the Go that is installed."""
    environment = {**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOWORK": "off"}
    return subprocess.run([go, *arguments], cwd=SOURCE, env=environment, capture_output=True, text=True, check=False)


def calls(
    meter: Meter,
    *,
    program: Sequence[str],
    url: str,
    authority: str,
    operations: Sequence[str],
    concurrency: int,
    objects: int,
) -> dict[str, Any]:
    """Measure the calls of so many objects, on open connections. The CPU is that of the program, with its threads.

    Raises RuntimeError if a call fails.
    """
    job = {
        "url": url,
        "authority": authority if url.startswith("https") else "",
        "bucket": BUCKET,
        "keys": [key_of(number) for number in range(min(objects, 1000))],
        "operations": operations,
        "concurrency": concurrency,
    }
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        versions = _ask(process, json.dumps(job))

        def cpu_after(more: int) -> float:
            return float(_ask(process, str(more))["cpu"])

        cpu_after(WARM_UP * concurrency)
        with meter.measuring(lambda: cpu_after(0)):
            cpu_after(objects)
    return {"calls": objects * len(operations), "versions": versions}


def _ask(process: subprocess.Popen[str], line: str) -> Any:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{line}\n")
    process.stdin.flush()
    answer = process.stdout.readline()
    if not answer:
        raise RuntimeError(f"the program ended with {process.wait()}")
    return json.loads(answer)
