"""Build the ARNs of an IAM policy."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Arns:
    """A builder of ARNs in one partition. Where only a name is given, the ARN matches any region and account."""

    partition: str

    def bucket(self, name: str) -> str:
        return f"arn:{self.partition}:s3:::{name}"

    def objects(self, bucket: str, prefix: str = "") -> str:
        """Return the ARN pattern for the objects whose keys begin with this literal prefix."""
        return f"{self.bucket(bucket)}/{_literal(prefix)}*"

    def anywhere(self, service: str, resource: str) -> str:
        return f"arn:{self.partition}:{service}:*:*:{resource}"

    def queue(self, name: str) -> str:
        return self.anywhere("sqs", name)

    def table(self, name: str) -> str:
        """Return the ARN of a table. name: its name or its ARN."""
        return name if name.startswith("arn:") else self.anywhere("dynamodb", f"table/{name}")


def _literal(prefix: str) -> str:
    """Escape `*`, `?` and `$`, which are special in a policy's ARN (IAM User Guide, policy variables)."""
    return "".join(f"${{{character}}}" if character in "*?$" else character for character in prefix)
