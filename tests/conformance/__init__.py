"""Conformance suites for engines, ledgers and checksum manifests of other authors, and an S3 in memory.

Each suite is a tuple of checks without a test framework: functions that raise AssertionError. Async ones are awaited.
The wheel has this folder as `auditor.testing`.
"""

from .engines import CHECKS as ENGINE_CHECKS
from .engines import EngineCheck, EngineWorld
from .ledgers import CHECKS as LEDGER_CHECKS
from .ledgers import LedgerCheck, OpenLedger
from .manifests import CHECKS as MANIFEST_CHECKS
from .manifests import ManifestCheck
from .memory import MemoryEngine, MemoryObject

__all__ = [
    "ENGINE_CHECKS",
    "LEDGER_CHECKS",
    "MANIFEST_CHECKS",
    "EngineCheck",
    "EngineWorld",
    "LedgerCheck",
    "ManifestCheck",
    "MemoryEngine",
    "MemoryObject",
    "OpenLedger",
]
