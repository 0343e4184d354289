"""Alert an SNS topic if a run fails or could not read all: a short message with counts and prefixes, never keys."""

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
"""Characters of a failure's sentence, which has the event of each target that failed."""


class Topic(Protocol):
    async def publish(self, subject: str, message: str) -> None:
        """Publish one message. Raises RunError if the topic refuses it."""
        ...


class SnsTopic:
    """A topic of SNS (SNS API: Publish). The SDK alone retries failed calls."""

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
    """Return the alert for a finished run that could not read all, or listed nothing; None for any other run."""
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
    """Return the alert for a failed invocation. noun: "audit" or "verification". sentence: the error's text."""
    return f"The {noun} failed: {visible(sentence)[:_LONGEST]}"


async def alert(topic: Topic | None, message: str | None) -> None:
    """Publish the message, unless the topic or the message is None."""
    if topic is not None and message is not None:
        await topic.publish(_SUBJECT, message)
