"""Conformance suites for engines, ledgers and forms of checksum manifests by other authors, and an S3 in memory.

In a checkout the suites lie with the tests; in the wheel, `tests/conformance` itself is `auditor.testing`.
"""

from tests.conformance import *  # noqa: F403
from tests.conformance import __all__ as __all__
