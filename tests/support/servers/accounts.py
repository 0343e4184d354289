"""A server with several accounts: STS gives out sessions of roles, and each bucket answers its own account only."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from tests.support.servers.hooked import HookedServer
from tests.support.servers.stub_calls import Call, Refused, Reply
from tests.support.servers.stub_xml import STS, document, tag
from tests.support.servers.world import OWNER, World

OWN: Final = "000000000000"
"""The account of the own credentials."""
OWN_KEY: Final = "testing"
"""Their access key, as tests/conftest.py sets it."""
_KEY: Final = re.compile(r"Credential=([^/]+)/")


def role_of(account: str) -> str:
    return f"arn:aws:iam::{account}:role/auditor"


@dataclass(eq=False)
class AccountsServer(HookedServer):
    """A context manager. owners: by bucket, its account. denied: the roles that nobody may assume. unlisted: accounts
    whose ListBuckets is refused. refused: buckets whose every call but ListBuckets is refused. external_ids: by role,
    the one that it asks for. session: the length of a session. page: number of buckets in a page of ListBuckets.
    broken_after: by account, the number of pages after which ListBuckets fails.
    """

    owners: dict[str, str] = field(default_factory=dict)
    denied: set[str] = field(default_factory=set)
    unlisted: set[str] = field(default_factory=set)
    refused: set[str] = field(default_factory=set)
    external_ids: dict[str, str] = field(default_factory=dict)
    session: timedelta = timedelta(hours=1)
    page: int = 1000
    broken_after: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__init__(World(account=OWN, arn=f"arn:aws:iam::{OWN}:user/auditor"), self._hooked)
        self.keys = {OWN_KEY: OWN}
        self.seen: list[tuple[str, Call]] = []

    def __enter__(self) -> AccountsServer:
        super().__enter__()
        return self

    def give(self, account: str, *names: str) -> None:
        """Give an account some empty buckets."""
        for name in names:
            self.world.add(name, account=account)
            self.owners[name] = account

    def calls_by(self, account: str) -> list[Call]:
        """The calls that were signed by an account's credentials."""
        return [call for key, call in self.seen if self.keys.get(key) == account]

    def sessions(self, account: str) -> Counter[str]:
        """The number of calls that each session of an account's role signed, by its access key."""
        return Counter(key for key, _ in self.seen if key != OWN_KEY and self.keys.get(key) == account)

    def _hooked(self, call: Call) -> Reply | None:
        found = _KEY.search(call.headers.get("authorization", ""))
        key = found[1] if found else ""
        self.seen.append((key, call))
        try:
            return self._answered(call, key)
        except Refused as refusal:
            return refusal.reply(call)

    def _answered(self, call: Call, key: str) -> Reply | None:
        account = self.keys.get(key)
        if account is None:
            raise Refused(403, "InvalidAccessKeyId")
        if call.operation == "AssumeRole":
            return self._session(call)
        if call.operation == "GetCallerIdentity":
            found = tag("Account", account) + tag("Arn", f"arn:aws:iam::{account}:user/auditor")
            return _sts("GetCallerIdentity", found)
        if call.operation == "ListBuckets":
            return self._listing(call, account)
        owner = self.owners.get(call.bucket)
        expected = call.headers.get("x-amz-expected-bucket-owner")
        if owner is not None and (owner != account or expected not in (None, owner) or call.bucket in self.refused):
            raise Refused(403, "AccessDenied")
        return None

    def _session(self, call: Call) -> Reply:
        asked = call.form
        role, account = asked["RoleArn"], asked["RoleArn"].split(":")[4]
        if role in self.denied or asked.get("ExternalId") != self.external_ids.get(role):
            raise Refused(403, "AccessDenied")
        key = f"ASIA{account}{len(self.keys):04d}"
        self.keys[key] = account
        until = (datetime.now(UTC) + self.session).strftime("%Y-%m-%dT%H:%M:%SZ")
        credentials = (
            tag("AccessKeyId", key) + tag("SecretAccessKey", "s") + tag("SessionToken", "t") + tag("Expiration", until)
        )
        user = tag("Arn", f"arn:aws:sts::{account}:assumed-role/auditor/s3-auditor") + tag("AssumedRoleId", "A:s")
        return _sts("AssumeRole", f"<Credentials>{credentials}</Credentials><AssumedRoleUser>{user}</AssumedRoleUser>")

    def _listing(self, call: Call, account: str) -> Reply:
        if account in self.unlisted:
            raise Refused(403, "AccessDenied")
        names = sorted(name for name, owner in self.owners.items() if owner == account)
        names = [name for name in names if name.startswith(call.query.get("prefix", ""))]
        begin = int(call.query.get("continuation-token", "0"))
        if begin // self.page >= self.broken_after.get(account, 1 << 30):
            raise Refused(403, "AccessDenied")
        shown = names[begin : begin + self.page]
        regions = {name: bucket.region for name, bucket in self.world.buckets.items()}
        entries = "".join(
            f"<Bucket>{tag('Name', name)}{tag('BucketRegion', regions.get(name, 'us-east-1'))}</Bucket>"
            for name in shown
        )
        more = tag("ContinuationToken", str(begin + self.page)) if names[begin + self.page :] else ""
        body = f"<Owner>{tag('ID', OWNER)}</Owner><Buckets>{entries}</Buckets>{more}"
        return Reply(200, {"Content-Type": "application/xml"}, document("ListAllMyBucketsResult", body))


def _sts(action: str, result: str) -> Reply:
    body = document(f"{action}Response", f"<{action}Result>{result}</{action}Result>", STS)
    return Reply(200, {"Content-Type": "text/xml"}, body)
