"""Select our own code for the package: the functions' modules, without the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from deploy.cut import Files

PACKAGES: Final = ("auditor", "handlers")
LEFT_OUT: Final = (
    "auditor/__main__.py",
    "auditor/aio/blocking.py",
    "auditor/audit/again.py",
    "auditor/audit/divided/child.py",
    "auditor/audit/divided/jobs.py",
    "auditor/audit/divided/messages.py",
    "auditor/audit/divided/processes.py",
    "auditor/audit/divided/starting.py",
    "auditor/audit/estimate.py",
    "auditor/audit/explain.py",
    "auditor/audit/fill.py",
    "auditor/audit/fill_facts.py",
    "auditor/audit/fill_judge.py",
    "auditor/audit/fill_source.py",
    "auditor/audit/kit",
    "auditor/audit/library.py",
    "auditor/audit/offline.py",
    "auditor/audit/probe",
    "auditor/audit/security_hub.py",
    "auditor/audit/stored.py",
    "auditor/audit/stored_page.py",
    "auditor/audit/stored_values.py",
    "auditor/audit/what_if.py",
    "auditor/aws/iam",
    "auditor/cli",
    "auditor/config/estate.py",
    "auditor/config/keywords.py",
    "auditor/hashing/batch/import_report.py",
    "auditor/hashing/batch/report.py",
    "auditor/hashing/library.py",
    "auditor/ledger/manifests",
    "auditor/reports/accept.py",
    "auditor/reports/diff.py",
    "auditor/reports/estimate.py",
    "auditor/reports/explain.py",
    "auditor/reports/formats",
    "auditor/reports/key_history.py",
    "auditor/reports/terminal.py",
    "auditor/reports/what_if.py",
    "auditor/runs/checking.py",
    "auditor/runs/folder_place.py",
    "auditor/runs/run.py",
    "auditor/runs/seal_chain.py",
    "auditor/s3/inventory/configuration.py",
    "auditor/s3/relisting.py",
    "auditor/testing.py",
    "auditor/verdict/vantage.py",
    "auditor/verify/library.py",
)
"""Modules for people at a terminal, for other programs and for tests. The demo makes buckets; a function must not."""


def source_files(root: Path) -> Files:
    """Return the auditor's own files for the zip, and the licence."""
    files = {"auditor/LICENSE": (root / "LICENSE").read_bytes()}
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*")):
            relative = path.relative_to(root)
            if path.is_file() and path.suffix != ".pyc" and not _is_left_out(relative):
                files[relative.as_posix()] = path.read_bytes()
    return files


def _is_left_out(path: Path) -> bool:
    hidden = any(part.startswith(".") or part == "__pycache__" for part in path.parts)
    return hidden or any(path.is_relative_to(name) for name in LEFT_OUT)
