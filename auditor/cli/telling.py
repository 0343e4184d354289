"""Tell of a command's runs on the channels that the settings name. Without such a setting nothing is sent."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Final

from auditor.cli.output import say
from auditor.config.channels import channels_of
from auditor.config.settings import CHANNELS, Settings
from auditor.errors import AuditorError
from auditor.model.alert import Alert, RunEvent, failure_alert

_SECONDS: Final = 60.0
"""Seconds in which the channels take an alert and an event."""


class Teller:
    """Sends alerts and events for the runs of one command. A failed alert never hides the result of a run: the command
    says so in a sentence, and ends with exit code 1 unless the runs have another one.

    noun: "audit" or "verification".
    """

    def __init__(self, settings: Settings, noun: str) -> None:
        self._channels = channels_of(settings) if any(getattr(settings, name) for name in CHANNELS) else None
        self._noun = noun
        self._failures: list[str] = []
        self._undelivered = False

    async def tell(self, alert: Alert | None, event: RunEvent | None = None) -> None:
        """Send the alert and the event. Print a sentence if a channel does not take it."""
        if self._channels is None:
            return
        try:
            async with asyncio.timeout(_SECONDS):
                await self._channels.tell(alert, event)
        except (AuditorError, TimeoutError) as error:
            self._undelivered = True
            say(f"an alert or event was not sent: {str(error) or 'the channel did not answer'}")

    def failed(self, sentence: str) -> None:
        """Note the failure of one target, for the alert at the end of the command."""
        self._failures.append(sentence)

    async def around(self, work: Awaitable[int]) -> int:
        """Do the work of the whole command, send one alert on its failures, and return the exit code."""
        try:
            code = await work
        except AuditorError as error:
            self.failed(str(error))
            await self._tell_failures()
            raise
        await self._tell_failures()
        return code or int(self._undelivered)

    async def _tell_failures(self) -> None:
        if self._failures:
            await self.tell(failure_alert(self._noun, "; ".join(self._failures)))
