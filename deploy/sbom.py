"""Write a bill of materials of the functions' package, in CycloneDX: `python -m deploy.sbom`."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final
from uuid import NAMESPACE_OID, uuid5

from auditor.model.version import VERSION
from deploy.options import ROOT

_PINNED: Final = re.compile(r"^([A-Za-z0-9._-]+)==([^ ;\\]+) *(?:; *([^\\]*))?")


def bill(lock: str) -> dict[str, Any]:
    """Return the bill of a lock file (CycloneDX 1.5). Equal locks make equal bills, so it has no time.

    Requirements for Windows alone are left out: no package has them.
    """
    parts = [
        {
            "type": "library",
            "bom-ref": f"{name}@{version}",
            "name": name,
            "version": version,
            "purl": f"pkg:pypi/{name}@{version}",
        }
        for name, version in _pinned(lock)
    ]
    ours = f"s3-auditor@{VERSION}"
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{uuid5(NAMESPACE_OID, ours + lock)}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": ours,
                "name": "s3-auditor",
                "version": VERSION,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            }
        },
        "components": parts,
        "dependencies": [{"ref": ours, "dependsOn": [one["bom-ref"] for one in parts]}],
    }


def _pinned(lock: str) -> Iterator[tuple[str, str]]:
    for line in lock.splitlines():
        if (found := _PINNED.match(line)) and "== 'win32'" not in (found[3] or ""):
            yield found[1].lower().replace("_", "-"), found[2]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command. Return 0 when the bill is printed."""
    parser = argparse.ArgumentParser(prog="python -m deploy.sbom", description=__doc__)
    parser.add_argument("--lock", type=Path, default=ROOT / "requirements.txt", help="the lock (default: %(default)s)")
    given = parser.parse_args(arguments)
    sys.stdout.write(json.dumps(bill(given.lock.read_text(encoding="utf-8")), indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
