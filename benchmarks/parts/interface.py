"""What a part of the benchmarks is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.harness import Bench

Results = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Part:
    """measure: everything, as JSON knows it. page: its section of the page. plots: SVG by the name of its file."""

    measure: Callable[[Bench], Results]
    page: Callable[[Results], str]
    plots: Callable[[Results], Mapping[str, str]] = lambda results: {}
