"""The parameters of a deployment of the Lambda functions, as far as the policies of their roles follow from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

SERVICE: Final = "s3-auditor"
"""The first part of the names of the stack and its resources; `-STAGE` is the second."""
STAGE: Final = "prod"
LEVEL: Final = "metadata"
"""The default stage and level of a deployment."""


class Deployment(Struct, frozen=True, kw_only=True):
    """The parameters of a deployment of the Lambda functions."""

    stage: str = STAGE
    level: str | None = None
    """exposure, metadata or fixity; None for LEVEL."""
    out: str = ""
    """The place of the reports: `s3://BUCKET[/PREFIX]`."""
    ledger: str | None = None
    """The URI of the ledger, `dynamodb:TABLE`; None for no ledger."""
    topic: str | None = None
    """The ARN of the SNS topic for alerts; None for the stack's own topic."""
    chat_topic: str | None = None
    """The ARN of the SNS topic for chat applications; None if there is none."""
    event_bus: str | None = None
    """The ARN of the event bus; None if there is none."""
    audited_keys: Sequence[str] = ()
    """ARNs of the KMS keys of the audited objects."""
    key_policies: bool = False
    """True if audits read the policies of these keys, or of all keys if none are named."""
    reports_key: str | None = None
    """ARN of the KMS key of the reports bucket, the queues, the topic, the ledger and the logs."""
    inventory: str | None = None
    """The place of the reports of S3 Inventory: `s3://BUCKET[/PREFIX]`; None if audits read none."""
    inventory_key: str | None = None
    """ARN of the KMS key of these reports; None if they are not under SSE-KMS."""
    divides: bool = False
    """True if a state machine audits large targets."""
    in_vpc: bool = False
    """True if the functions run in a VPC."""
    file_system: str | None = None
    """ARN of the access point of a shared file system (EFS) that the functions mount; None if there is none."""

    def named(self, thing: str) -> str:
        return f"{SERVICE}-{self.stage}-{thing}"
