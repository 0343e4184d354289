"""Test suites for engines, ledgers and manifest formats that other authors write, and an S3 in memory to test with.

The code is in tests/conformance. The wheel has that folder under the name `auditor.testing`, in place of this module.
"""

from tests.conformance import *  # noqa: F403
from tests.conformance import __all__ as __all__
