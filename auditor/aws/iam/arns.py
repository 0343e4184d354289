"""ARNs as an IAM policy names them, in whichever partition."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Arns:
    """Of one partition. Where a name is all that is known, any region and account will do."""

    partition: str

    def bucket(self, name: str) -> str:
        return f"arn:{self.partition}:s3:::{name}"

    def objects(self, bucket: str, prefix: str = "") -> str:
        """Those whose keys begin so, to the letter."""
        return f"{self.bucket(bucket)}/{_literal(prefix)}*"

    def anywhere(self, service: str, resource: str) -> str:
        return f"arn:{self.partition}:{service}:*:*:{resource}"

    def queue(self, name: str) -> str:
        return self.anywhere("sqs", name)

    def table(self, name: str) -> str:
        """name: a table's name, or its ARN already."""
        return name if name.startswith("arn:") else self.anywhere("dynamodb", f"table/{name}")


def _literal(prefix: str) -> str:
    """The prefix for an ARN, where `*`, `?` and `$` would mean something (IAM User Guide, policy variables)."""
    return "".join(f"${{{character}}}" if character in "*?$" else character for character in prefix)
