"""The error of building a package."""

from __future__ import annotations


class BuildError(Exception):
    """One sentence that names what to change."""
