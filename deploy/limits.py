"""Check a packaged template against AWS's limits before anything is sent: `python -m deploy.limits TEMPLATE`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from deploy.resolving import Stack

TEMPLATE: Final = 1_000_000
"""Bytes of a template in a bucket (CloudFormation quotas: 1 MB)."""
INLINE: Final = 51_200
"""Bytes of a template without a bucket (CloudFormation quotas)."""
RESOURCES: Final = 500
"""Resources of a template (CloudFormation quotas)."""
PARAMETER: Final = 4_096
"""Bytes of a parameter's value (CloudFormation quotas)."""
ROLE: Final = 10_240
"""Characters of all inline policies of a role, white space left out (IAM quotas)."""
VARIABLES: Final = 4_096
"""Bytes of a function's environment variables (Lambda quotas)."""
PATTERN: Final = 2_048
"""Characters of an event pattern (EventBridge quotas)."""
QUEUE_POLICY: Final = 8_192
"""Bytes of a queue's policy."""

_FEWER: Final = "name fewer buckets, in more than one stage"
_NO_ALARMS: Final = f"give --param bucketAlarms=false, or {_FEWER}"
_PATTERNS: Final = "give --param roleBuckets=.. with patterns such as my-company-*, in place of every bucket's name"


def exceeded(template: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence for each limit that the template exceeds. Names that AWS will make up count as short."""
    written, resources = _size(template), Stack(template, "aws-us-gov", "us-gov-west-1").resources()
    yield from _above("the template", written, TEMPLATE, "bytes", "CloudFormation", _FEWER)
    number = len(template["Resources"])
    yield from _above("the template", number, RESOURCES, "resources", "CloudFormation", _NO_ALARMS)
    for name, one in template["Parameters"].items():
        value = len(str(one.get("Default", "")).encode())
        yield from _above(f"the parameter {name}", value, PARAMETER, "bytes", "CloudFormation", "shorten it")
    for name, one in resources.items():
        given = one.get("Properties", {})
        if one["Type"] == "AWS::IAM::Role":
            length = sum(_size(policy["PolicyDocument"]) for policy in given.get("Policies", []))
            yield from _above(f"the role {name}", length, ROLE, "characters of policy", "IAM", _PATTERNS)
        elif one["Type"] == "AWS::Lambda::Function":
            length = _size(given.get("Environment", {}).get("Variables", {}))
            fix = "shorten trusted, or put it into the file of config"
            yield from _above(f"the function {name}", length, VARIABLES, "bytes of variables", "Lambda", fix)
        elif one["Type"] == "AWS::Events::Rule":
            length = _size(given.get("EventPattern", {}))
            yield from _above(f"the rule {name}", length, PATTERN, "characters of pattern", "EventBridge", _FEWER)
        elif one["Type"] == "AWS::SQS::QueuePolicy":
            length = _size(given["PolicyDocument"])
            yield from _above(f"the queue policy {name}", length, QUEUE_POLICY, "bytes", "SQS", _PATTERNS)


def _size(value: Any) -> int:
    return len(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode())


def _above(thing: str, number: int, limit: int, unit: str, service: str, fix: str) -> Iterator[str]:
    if number > limit:
        yield f"{thing} would have {number:,} {unit}, and {service} takes {limit:,}: {fix}"


def main(arguments: list[str] | None = None) -> int:
    """Run the command. Return 0 if the template is within every limit, else 1."""
    (path,) = sys.argv[1:] if arguments is None else arguments
    found = list(exceeded(json.loads(Path(path).read_text(encoding="utf-8"))))
    sys.stderr.write("".join(f"{sentence}\n" for sentence in found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
