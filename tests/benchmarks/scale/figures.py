"""Round figures in the place of measured ones, so that a night can be computed by hand."""

from __future__ import annotations

from benchmarks.scale.measured import Measured, Mode

FOUND = Measured(
    call_cpu=50e-6,
    known_cpu=40e-6,
    prior_cpu={Mode.MIXED: 20e-6, Mode.INCREMENTAL: 30e-6},
    line_bytes=50.0,
    row_bytes=40.0,
    begin_seconds={128: 5.0, 512: 2.0, 1769: 0.5},
)
