"""Send an alert to an SNS topic if a run fails or could not read everything: a short message with counts and prefixes,
never with keys.
"""

from __future__ import annotations

from typing import Final, Protocol

from auditor.aws.client import open_client
from auditor.aws.failures import explain
from auditor.errors import CallFailed, RunError
from auditor.model.summary import Summary
from auditor.reports.summary import holes
from auditor.text import visible

_SUBJECT: Final = "S3 audit"
_LONGEST: Final = 4000
"""Largest number of characters of an error's text in an alert. The text has the restart event of each failed target."""


class Topic(Protocol):
    """A topic that takes alerts and passes them to its subscribers."""

    async def publish(self, subject: str, message: str) -> None:
        """Publish one message. Raises RunError if the topic refuses it."""
        ...


class SnsTopic:
    """An SNS topic that takes messages (SNS API: Publish). The SDK retries failed calls; this class does not."""

    def __init__(self, arn: str) -> None:
        self._arn = arn

    async def publish(self, subject: str, message: str) -> None:
        region = self._arn.split(":")[3] if self._arn.count(":") >= 5 else None
        try:
            async with open_client("sns", threads=1, region=region, endpoint_url=None, profile=None) as client:
                await client.call("Publish", TopicArn=self._arn, Subject=subject, Message=message)
        except CallFailed as failure:
            topic = f"the alert topic {self._arn}"
            raise RunError(explain(topic, failure, allow="sns:Publish", absent="check AUDITOR_TOPIC")) from failure


def hole_message(summary: Summary) -> str | None:
    """Return the alert for a finished audit that could not read everything, or that listed nothing; None for any other
    audit.
    """
    missing = holes(summary)
    target, coverage = summary.target, summary.coverage
    if not missing:
        nothing = target.prefix and not target.start_after and not coverage.listed + coverage.delete_markers
        where = f"s3://{target.bucket}/{visible(target.prefix)}"
        return f"The audit of {where} listed nothing: is the prefix right?" if nothing else None
    lines = [
        f"The audit of s3://{target.bucket}/{visible(target.prefix)} has holes: {'; '.join(missing)}.",
        f"Listed {coverage.listed:,}, audited {coverage.audited:,}, vanished {coverage.vanished:,},"
        f" undecided {coverage.undecided:,}.",
        *(f"Undecided: {item.action} {item.code}, {item.count:,} times." for item in summary.unread[:10]),
        *(f"Rule {item.rule}: {item.action} {item.code}." for item in summary.rules_undecided[:20]),
        f"Report: {summary.out}/report.html",
    ]
    return "\n".join(lines)


def failure_message(noun: str, sentence: str) -> str:
    """Return the alert for a failed invocation of the function.

    noun: "audit" or "verification". sentence: the text of the error.
    """
    return f"The {noun} failed: {visible(sentence)[:_LONGEST]}"


async def alert(topic: Topic | None, message: str | None) -> None:
    """Publish the message to the topic. Do nothing if the topic or the message is None."""
    if topic is not None and message is not None:
        await topic.publish(_SUBJECT, message)
