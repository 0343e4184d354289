"""Counts in words."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """`1 object`, `1,234 objects`. noun: one whose plural takes an s."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
