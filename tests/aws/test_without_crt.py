"""botocore signs in Python, although awscrt is installed: whichever module of ours is imported first."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.support.paths import ROOT

SDK = re.compile(r"^(?:import|from) (?:aioboto3|aiobotocore|boto3|botocore)\b", re.MULTILINE)
USERS = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in (ROOT / "auditor").rglob("*.py")
    if SDK.search(path.read_text()) and "auditor/aws/" not in path.as_posix()
)
"""The modules outside of auditor.aws, whose import is what turns awscrt off."""
CODE = "import importlib, sys; importlib.import_module(sys.argv[1]); import auditor.aws.session, botocore.compat as c"


@pytest.mark.parametrize(
    "module",
    ["auditor.cli.main", "handlers.audit", *(pytest.param(name, marks=pytest.mark.slow) for name in USERS)],
)
def test_botocore_goes_without_awscrt(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BOTO_DISABLE_CRT")
    command = [sys.executable, "-c", f"{CODE}; print(c.HAS_CRT)", module]
    assert subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True).stdout == "False\n"
