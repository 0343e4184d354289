"""The interface of a part of the benchmarks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.harness import Bench

Results = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Part:
    """A part. measure: returns the results as JSON values. page: its section of the page. plots: SVG by file name."""

    measure: Callable[[Bench], Results]
    page: Callable[[Results], str]
    plots: Callable[[Results], Mapping[str, str]] = lambda results: {}
