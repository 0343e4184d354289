"""Build the ARNs of an IAM policy."""

from __future__ import annotations

from msgspec import Struct


class Arns(Struct, frozen=True):
    """Builds the ARNs of one partition for an IAM policy. An ARN built from a name matches any region and account."""

    partition: str

    def bucket(self, name: str) -> str:
        return f"arn:{self.partition}:s3:::{name}"

    def objects(self, bucket: str, prefix: str = "") -> str:
        """Return an ARN pattern that matches the objects whose keys begin with `prefix`, taken literally."""
        return f"{self.bucket(bucket)}/{_literal(prefix)}*"

    def anywhere(self, service: str, resource: str) -> str:
        return f"arn:{self.partition}:{service}:*:*:{resource}"

    def queue(self, name: str) -> str:
        return self.anywhere("sqs", name)

    def table(self, name: str) -> str:
        """Return the ARN of a DynamoDB table, given by its name or by its ARN."""
        return name if name.startswith("arn:") else self.anywhere("dynamodb", f"table/{name}")

    def event_bus(self, name: str) -> str:
        """Return the ARN of an event bus, given by its name or by its ARN."""
        return name if name.startswith("arn:") else self.anywhere("events", f"event-bus/{name}")


def _literal(prefix: str) -> str:
    """Escape `*`, `?` and `$`, which are special in the ARNs of a policy (IAM User Guide, policy variables)."""
    return "".join(f"${{{character}}}" if character in "*?$" else character for character in prefix)
