"""A ledger is imported when it is opened, so that a cold start without one does not pay for it."""

from __future__ import annotations

import subprocess
import sys

from tests.support.paths import ROOT

SCRIPT = """
import sys
import auditor.ledger
assert not {"sqlite3", "boto3", "botocore"} & sys.modules.keys(), sorted(sys.modules)
auditor.ledger.open_ledger("sqlite::memory:")
assert "sqlite3" in sys.modules
assert "botocore" not in sys.modules
"""


def test_module_of_a_ledger_is_imported_when_it_is_opened() -> None:
    subprocess.run([sys.executable, "-c", SCRIPT], cwd=ROOT, check=True)
