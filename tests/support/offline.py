"""The command line in a process that may not connect: `python -m tests.support.offline judge RUN`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from auditor.cli.main import main
from tests.support.paths import ROOT

FORBIDDEN: Final = frozenset({"socket.connect", "socket.getaddrinfo", "socket.sendto", "socket.sendmsg"})
NOWHERE: Final = "http://127.0.0.1:1"


def offline(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a command of the auditor without a network, credentials or settings."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "AUDITOR_"))}
    return subprocess.run(
        [sys.executable, "-m", "tests.support.offline", *map(str, arguments)],
        cwd=ROOT,
        env={**kept, "AWS_ENDPOINT_URL": NOWHERE, "AWS_EC2_METADATA_DISABLED": "true"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def _refuse(event: str, arguments: object) -> None:
    if event in FORBIDDEN:
        raise RuntimeError(f"{event} {arguments}")


if __name__ == "__main__":
    sys.addaudithook(_refuse)
    sys.exit(main(sys.argv[1:]))
