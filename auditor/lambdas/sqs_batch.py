"""Read the event by which SQS hands a batch of messages to a Lambda function, and write the function's answer.

Source: AWS Lambda Developer Guide, "Using Lambda with Amazon SQS".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from auditor.aws.sqs import Received
from auditor.errors import UsageError


def records_of(event: object) -> list[Any]:
    """Return the records of the event. Raises UsageError if it has none."""
    records = event.get("Records") if isinstance(event, Mapping) else None
    if not isinstance(records, list):
        raise UsageError("the event has no Records: this function takes SQS batches only")
    return records


def message_id(record: Any) -> str:
    """Return the ID of the message in a record. Raises UsageError if it has none: its failure could not be reported to
    SQS, which would delete the message.
    """
    name = record.get("messageId") if isinstance(record, Mapping) else None
    if not isinstance(name, str) or not name:
        raise UsageError("a record of the event has no messageId: this function takes SQS batches only")
    return name


def received_of(name: str, record: Mapping[str, Any]) -> Received | None:
    """Return the message in a record, with its ID `name`; None if the record is malformed."""
    receipt, body, attributes = record.get("receiptHandle"), record.get("body"), record.get("attributes")
    if not isinstance(receipt, str) or not isinstance(body, str):
        return None
    count = attributes.get("ApproximateReceiveCount") if isinstance(attributes, Mapping) else None
    return Received(name, receipt, body, int(count) if isinstance(count, str) and count.isdecimal() else 1)


def answer_of(failed: Iterable[str]) -> dict[str, Any]:
    """Return the answer by which SQS delivers the messages with these IDs again, and deletes the others."""
    return {"batchItemFailures": [{"itemIdentifier": name} for name in failed]}
