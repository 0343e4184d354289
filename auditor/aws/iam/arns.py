"""ARNs for IAM policies, of any partition."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Arns:
    """The ARNs of one partition. They match any region and account where only a name is known."""

    partition: str

    def bucket(self, name: str) -> str:
        return f"arn:{self.partition}:s3:::{name}"

    def objects(self, bucket: str, prefix: str = "") -> str:
        """The objects whose keys begin with exactly this prefix."""
        return f"{self.bucket(bucket)}/{_literal(prefix)}*"

    def anywhere(self, service: str, resource: str) -> str:
        return f"arn:{self.partition}:{service}:*:*:{resource}"

    def queue(self, name: str) -> str:
        return self.anywhere("sqs", name)

    def table(self, name: str) -> str:
        """name: a table's name or ARN."""
        return name if name.startswith("arn:") else self.anywhere("dynamodb", f"table/{name}")


def _literal(prefix: str) -> str:
    """Escape `*`, `?` and `$`, which are special in an ARN (IAM User Guide, policy variables)."""
    return "".join(f"${{{character}}}" if character in "*?$" else character for character in prefix)
