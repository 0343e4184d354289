"""Publish messages to an SNS topic."""

from __future__ import annotations

from typing import Protocol

from auditor.aws.client import open_client
from auditor.aws.failures import explain
from auditor.errors import CallFailed, RunError


class Topic(Protocol):
    """A topic that takes messages and passes them to its subscribers."""

    async def publish(self, subject: str, message: str) -> None:
        """Publish one message. Raises RunError if the topic refuses it."""
        ...


class SnsTopic:
    """An SNS topic that takes messages (SNS API: Publish). The SDK retries failed calls; this class does not."""

    def __init__(self, arn: str, setting: str = "AUDITOR_TOPIC", profile: str | None = None) -> None:
        """setting: the setting that names the topic, for messages."""
        self._arn = arn
        self._setting = setting
        self._profile = profile

    async def publish(self, subject: str, message: str) -> None:
        region = self._arn.split(":")[3] if self._arn.count(":") >= 5 else None
        try:
            opening = open_client("sns", threads=1, region=region, endpoint_url=None, profile=self._profile)
            async with opening as client:
                await client.call("Publish", TopicArn=self._arn, Subject=subject, Message=message)
        except CallFailed as failure:
            topic = f"the alert topic {self._arn}"
            raise RunError(explain(topic, failure, allow="sns:Publish", absent=f"check {self._setting}")) from failure
