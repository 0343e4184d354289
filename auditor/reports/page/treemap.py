"""Lay out boxes whose areas are proportional to numbers, as square as possible (a squarified treemap)."""

from __future__ import annotations

from collections.abc import Sequence

Rectangle = tuple[float, float, float, float]
"""x, y, width and height."""


def squarified(numbers: Sequence[int], room: Rectangle) -> list[Rectangle]:
    """Return a rectangle for each number, which are positive and sorted, the largest first. Together they fill `room`.

    Each row is laid along the shorter side of the rest of the room, and takes numbers while its boxes get more square.
    """
    x, y, width, height = room
    total = sum(numbers)
    if not total or width <= 0 or height <= 0:
        return [(x, y, 0.0, 0.0) for _ in numbers]
    areas = [number * width * height / total for number in numbers]
    found: list[Rectangle] = []
    start = 0
    while start < len(areas):
        side = min(width, height)
        end = start + 1
        while end < len(areas) and _worst(areas[start : end + 1], side) <= _worst(areas[start:end], side):
            end += 1
        row = areas[start:end]
        thick = min(sum(row) / side, max(width, height)) if side > 0 else 0.0  # what is rounded stays within the room
        at = 0.0
        for area in row:
            long = min(area / thick if thick > 0 else 0.0, side - at)
            found.append((x, y + at, thick, long) if width >= height else (x + at, y, long, thick))
            at += long
        if width >= height:
            x, width = x + thick, max(width - thick, 0.0)
        else:
            y, height = y + thick, max(height - thick, 0.0)
        start = end
    return found


def _worst(row: Sequence[float], side: float) -> float:
    """Return the largest ratio of the sides of the boxes in a row."""
    if side <= 0:
        return 0.0
    thick = sum(row) / side
    return max(max(thick * thick / area, area / (thick * thick)) for area in row)
