"""Why a package was not made."""

from __future__ import annotations


class BuildError(Exception):
    """One sentence that names what to change."""
