"""Programs that the project itself uses: the generators of its documents and schemas, and an AWS on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
"""The repository."""
