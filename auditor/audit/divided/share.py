"""Divide the limits of a run, its calls and its dollars, over planning and ranges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from auditor.audit.ranges.plan import KeyRange, RangePlan, plan_by_listing
from auditor.config.settings import Settings
from auditor.errors import CallFailed
from auditor.model.target import Target
from auditor.s3.calls import MAX_CALLS
from auditor.s3.prices import in_dollars, in_pico, prices_with
from auditor.s3.rate import RateLimit

PLANNING: Final = 10
"""Planning may use one part in so many of the calls and dollars of a limited run."""


class PlanningShare(Struct, frozen=True):
    """The calls that planning may send in a run of these settings. most: their number; None: no limit."""

    settings: Settings
    most: int | None

    @classmethod
    def of(cls, settings: Settings) -> PlanningShare:
        limits = [] if settings.max_calls is None else [settings.max_calls // PLANNING]
        price = prices_with(settings.prices).list
        if settings.max_cost is not None and price:  # [prices] may give a server's calls for nothing
            limits.append(in_pico(settings.max_cost) // PLANNING // price)
        return cls(settings, min(limits, default=None))

    async def plan(
        self, target: Target, ranges: int, progress: Callable[[float], None], page: int, rate: RateLimit
    ) -> RangePlan:
        """Plan the ranges by the listing. If the share is used up before, the whole target is one range. progress:
        called with the estimated number of keys so far. page: number of keys on a page. rate: limit of calls per
        second.
        """
        try:
            return await plan_by_listing(target, self.settings, ranges, progress, most=self.most, page=page, rate=rate)
        except CallFailed as failure:
            if failure.code != MAX_CALLS or self.most is None:
                raise
            whole = KeyRange(target.start_after, target.stop_at, 0)
            return RangePlan(target, (whole,), None, False, self.most)

    def rest(self, calls: int) -> Settings:
        """Return the settings with what is left after so many calls that listed keys."""
        settings = self.settings
        if settings.max_calls is not None:
            settings = replace(settings, max_calls=max(0, settings.max_calls - calls))
        if settings.max_cost is not None:
            spent = in_dollars(calls * prices_with(settings.prices).list)
            settings = replace(settings, max_cost=max(0.0, settings.max_cost - spent))
        return settings
