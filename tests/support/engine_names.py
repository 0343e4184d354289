"""The engines, for tests of behaviour above the engine: `make test` takes ours, `make test-slow` the others too."""

from __future__ import annotations

from typing import Final

import pytest

from auditor.s3.engines import ENGINES, is_installed

OURS_FIRST: Final = ["direct", *(pytest.param(name, marks=pytest.mark.slow) for name in ENGINES if name != "direct")]

INSTALLED: Final = tuple(filter(is_installed, ENGINES))
"""The engines that this environment has. Only the environment of the newest botocore lacks one: aioboto3 refuses it."""
