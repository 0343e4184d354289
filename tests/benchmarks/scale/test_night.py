"""Calls, hops and seconds of nights that were computed by hand."""

from __future__ import annotations

import re

from benchmarks.scale import night as nights
from benchmarks.scale.night import Night
from tests.support.paths import ROOT


def test_the_deployment_has_these_defaults() -> None:
    deployed = (ROOT / "deploy" / "parameters.yml").read_text(encoding="utf-8").partition("\nlocal:")[0]
    night = Night(objects=1)
    for name, value in (
        ("auditTimeout", nights.FUNCTION_SECONDS),
        ("auditMemory", night.memory),
        ("reportDays", night.kept_nights),
        ("maxRate", f"{night.max_rate:.0f}"),
    ):
        assert re.search(rf"\n  {name}: '?{value}'?(?: #.*)?\n", deployed), name
