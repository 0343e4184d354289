"""The channels that tell of a run: a topic for people, a topic for chats, and an event bus."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from msgspec import Struct

from auditor.aws.publish import EventBridgeBus, EventBus, SnsTopic, Topic
from auditor.config.settings import CHANNELS, SETTINGS, Settings
from auditor.errors import AuditorError, RunError
from auditor.model.alert import SOURCE, Alert, RunEvent
from auditor.reports.channel_texts import chat_message, subject_of, text_of


class Channels(Struct, frozen=True, kw_only=True):
    """The channels of one command or function; a channel that is None is not used.

    topic: gets alerts as plain text. chat: gets the same alerts in the schema of chat applications. bus: gets an event
    for each finished run.
    """

    topic: Topic | None = None
    chat: Topic | None = None
    bus: EventBus | None = None

    async def tell(self, alert: Alert | None, event: RunEvent | None = None) -> None:
        """Send the alert and the event, each on its channels. None: there is nothing to send.

        A channel that refuses does not keep the others from being used. Raises RunError afterwards, which names all
        that refused.
        """
        failed: list[AuditorError] = []
        if alert is not None and self.topic is not None:
            await _tried(self.topic.publish(subject_of(alert), text_of(alert)), failed)
        if alert is not None and self.chat is not None:
            await _tried(self.chat.publish(subject_of(alert), chat_message(alert)), failed)
        if event is not None and self.bus is not None:
            await _tried(self.bus.put(SOURCE, event.kind, event.detail), failed)
        if failed:
            raise RunError("; ".join(map(str, failed))) from failed[0]


def channels_of(settings: Settings) -> Channels:
    """Return the channels that the settings name."""
    named = {name: getattr(settings, name) for name in CHANNELS}
    return channels_named(named, lambda name: SETTINGS[name].option, settings.profile, settings.region)


def channels_named(
    names: Mapping[str, str | None],
    source: Callable[[str], str],
    profile: str | None = None,
    region: str | None = None,
) -> Channels:
    """Return the channels with these names. No channel is opened before it is used.

    names: by setting, of CHANNELS; a channel without a name is None. source: the name of a setting in its source, for
    messages. profile: the AWS profile. region: that of an event bus without an ARN.
    """
    topic, chat, bus = (names.get(name) for name in CHANNELS)
    return Channels(
        topic=SnsTopic(topic, source("topic"), profile) if topic else None,
        chat=SnsTopic(chat, source("chat_topic"), profile) if chat else None,
        bus=EventBridgeBus(bus, source("event_bus"), profile, region) if bus else None,
    )


async def _tried(sending: Awaitable[None], failed: list[AuditorError]) -> None:
    """Wait for one message to be sent. An error is added to `failed`, and not raised."""
    try:
        await sending
    except AuditorError as error:
        failed.append(error)
