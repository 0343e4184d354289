"""The questions about a bucket at AWS, answered from a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from auditor.aws.connection import Connection
from auditor.errors import CallFailed
from auditor.model.bucket import BucketFacts
from auditor.s3.bucket import BucketSettingsReader
from tests.support.fakes.caller import make_caller

ACCOUNT = "111122223333"
ANOTHERS = {"GetBucketAcl": {"Owner": {"ID": "other"}, "Grants": []}}
"""The ACL of another account's bucket."""


def failed(action: str, code: str, status: int = 403, **headers: str) -> CallFailed:
    return CallFailed(action, code, status, headers={name.replace("_", "-"): text for name, text in headers.items()})


class Answers:
    """The questions about a bucket of ours, with the answers that the test changes."""

    def __init__(self, **changes: Any) -> None:
        self._answers: dict[str, Any] = {
            "ListBuckets": {"Owner": {"ID": "me"}, "Buckets": [{"Name": "b"}]},
            "GetCallerIdentity": {"Account": ACCOUNT},
            "GetBucketAcl": {"Owner": {"ID": "me"}, "Grants": []},
            **changes,
        }
        self.accounts: list[str] = []

    async def head_bucket(self) -> Mapping[str, str]:
        return await self.ask("HeadBucket")

    async def ask(self, action: str, token: str | None = None) -> Mapping[str, Any]:
        answer = self._answers.get(action, failed(action, "AccessDenied"))
        if isinstance(answer, Exception):
            raise answer
        found: Mapping[str, Any] = answer
        return found

    async def control(self, action: str, account: str, arguments: Mapping[str, str]) -> Mapping[str, Any]:
        self.accounts.append(account)
        if action == "GetPublicAccessBlock":
            return await self.ask("Account")
        answer = self._answers.get(action, failed(action, "AccessDenied"))
        return await self.ask(action) if not callable(answer) else answer(dict(arguments))


def reader(answers: Any, caller: Any = None, **connection: Any) -> BucketSettingsReader:
    return BucketSettingsReader(Connection(bucket="b", **connection), caller or make_caller(), answers)


async def read(answers: Answers, **connection: Any) -> BucketFacts:
    return await reader(answers, **connection).read("us-east-1")
