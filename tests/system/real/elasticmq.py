"""ElasticMQ, a separate server with the SQS API, in a process of its own on 127.0.0.1.

https://github.com/softwaremill/elasticmq
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from tests.support.paths import ROOT

JARS: Final = Path(os.environ.get("ELASTICMQ_JARS") or ROOT / ".build" / "elasticmq")
_UP_SECONDS: Final = 60.0


@contextmanager
def elasticmq(log: Path) -> Iterator[str]:
    """Skips where there is no Java, or no ElasticMQ."""
    java = shutil.which("java")
    if java is None or not any(JARS.glob("elasticmq-server_*.jar")):
        pytest.skip("ElasticMQ is not here: it needs Java 17, and make elasticmq")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    settings = {
        "rest-sqs.bind-hostname": "127.0.0.1",
        "rest-sqs.bind-port": port,
        "rest-stats.enabled": "false",
        "node-address.host": "127.0.0.1",
        "node-address.port": port,
        "aws.region": "us-east-1",
        "aws.accountId": "123456789012",
    }
    options = [f"-D{name}={value}" for name, value in settings.items()]
    command = [java, "-Xmx128m", *options, "-cp", f"{JARS}/*", "org.elasticmq.server.Main"]
    with log.open("wb") as output:
        child = subprocess.Popen(command, stdout=output, stderr=output)
        try:
            url = f"http://127.0.0.1:{port}"
            _wait_for(url, child, log)
            yield url
        finally:
            child.kill()
            child.wait()


def _wait_for(url: str, child: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + _UP_SECONDS
    while time.monotonic() < until and child.poll() is None:
        try:
            urllib.request.urlopen(url, timeout=5).close()
            return
        except urllib.error.HTTPError as answer:  # it serves: this is no request of SQS's
            answer.close()
            return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError(f"ElasticMQ did not start: {log.read_text()[-2000:]}")
