"""DynamoDB Local, AWS's own DynamoDB for tests, in a process of its own on 127.0.0.1.

https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/DynamoDBLocal.html
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tests.support.paths import ROOT

HERE: Final = Path(__file__).parent
JARS: Final = Path(os.environ.get("DYNAMODB_LOCAL_JARS") or ROOT / ".build" / "dynamodb-local")


@dataclass(frozen=True, slots=True)
class DynamoDbLocal:
    url: str
    pid: int


@contextmanager
def dynamodb_local(log: Path) -> Iterator[DynamoDbLocal]:
    """Skips where there is no Java, or no DynamoDB Local."""
    java = shutil.which("java")
    if java is None or not any(JARS.glob("DynamoDBLocal-*.jar")):
        pytest.skip("DynamoDB Local is not here: it needs Java 17, and make dynamodb-local")
    command = [java, "-Xmx512m", f"-Djava.library.path={JARS}", "-cp", f"{JARS}/*"]
    command += [str(HERE / "LoopbackDynamoDb.java"), "-inMemory", "-disableTelemetry"]
    with (
        log.open("wb") as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as child,
    ):
        try:
            yield DynamoDbLocal(f"http://127.0.0.1:{_port(child, log)}", child.pid)
        finally:
            child.kill()


def _port(child: subprocess.Popen[str], log: Path) -> int:
    assert child.stdout is not None
    for line in child.stdout:
        if line.startswith("PORT "):
            return int(line.split()[1])
    raise RuntimeError(f"DynamoDB Local did not start: {log.read_text()[-2000:]}")
