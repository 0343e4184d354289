"""The engines, for tests of behaviour above the engine: `make test` takes ours, `make test-slow` the others too."""

from __future__ import annotations

from typing import Final

import pytest

from auditor.s3.engines import ENGINES

OURS_FIRST: Final = ["direct", *(pytest.param(name, marks=pytest.mark.slow) for name in ENGINES if name != "direct")]
