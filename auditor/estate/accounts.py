"""Open the accounts of an estate: assume each role, and list the buckets of each account."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from auditor.aio.stop import Stop
from auditor.aio.tasks import task_group
from auditor.aws.assumed_role import Role, RoleCredentials, assuming
from auditor.aws.connection import Connection
from auditor.aws.failures import explain
from auditor.config.settings import Settings
from auditor.errors import AuditorError, CallFailed, CredentialsError
from auditor.model.estate import EstateAccount
from auditor.s3.bucket_list import ListedBucket, account_of, list_buckets
from auditor.text import counted

AT_ONCE: Final = 8
"""Largest number of accounts that are opened side by side."""


class OpenedAccount(Struct, frozen=True, kw_only=True):
    """An account, and the buckets that its listing names.

    account: with its number, if that could be found out. credentials: of its role; None for the own ones. hole: why the
    buckets are not all known; None if the listing reached its end.
    """

    account: EstateAccount
    credentials: RoleCredentials | None = None
    buckets: tuple[ListedBucket, ...] = field(default=())
    hole: str | None = None

    def settings(self, settings: Settings) -> Settings:
        """Return the settings with which a bucket of this account is audited: signed by the account's role, in the
        bucket's own region, and only if this account owns the bucket. With an S3 Inventory where the bucket has one.
        """
        owner = self.account.id or settings.expected_owner
        return replace(settings, role=self.credentials, region=None, expected_owner=owner, live_without_inventory=True)


async def open_accounts(accounts: Sequence[EstateAccount], settings: Settings, stop: Stop) -> list[OpenedAccount]:
    """Open all accounts, in their order. An account that cannot be opened is a hole, and the others continue."""
    found: dict[int, OpenedAccount] = {}
    connection = Connection(bucket="", **settings.connection, concurrency=1, first_answer=settings.first_answer)
    permits = asyncio.Semaphore(AT_ONCE)

    async def one(number: int, account: EstateAccount) -> None:
        async with permits:
            found[number] = await asyncio.to_thread(_opened, account, connection, settings.expected_owner)

    async with stop.flight(), task_group() as group:
        for number, account in enumerate(accounts):
            group.create_task(one(number, account))
    return [
        found.get(number) or OpenedAccount(account=account, hole=f"{account.words} was not asked: {stop.reason}")
        for number, account in enumerate(accounts)
    ]


def _opened(account: EstateAccount, connection: Connection, expected: str | None) -> OpenedAccount:
    """Open one account. Blocks. expected: the number that the account must have; None for any."""
    credentials, unnamed = None, ""
    try:
        if account.role is not None:
            credentials = RoleCredentials(Role(account.role, account.external_id), assuming(connection))
            credentials.current()
            connection = replace(connection, role=credentials)
        else:
            account, unnamed = _identified(account, connection, expected)
        listing = list_buckets(connection)
    except AuditorError as error:
        return OpenedAccount(account=account, hole=f"{account.words}: {error}")
    if listing.failure is None:
        return OpenedAccount(account=account, credentials=credentials, buckets=listing.buckets)
    fault = explain("S3", listing.failure, allow="s3:ListAllMyBuckets", absent="check the endpoint")
    after = f", after {counted(len(listing.buckets), 'bucket')}" if listing.buckets else ""
    hole = f"{account.words}: its buckets are not all known{after}: {fault}{unnamed}"
    return OpenedAccount(account=account, credentials=credentials, buckets=listing.buckets, hole=hole)


def _identified(account: EstateAccount, connection: Connection, expected: str | None) -> tuple[EstateAccount, str]:
    """Return the account of the own credentials with its number, and words for the reason if that is not known.

    Raises CredentialsError if the number is another than the entry's, or than --expected-owner.
    """
    wanted = account.id or expected
    try:
        number = account_of(connection)
    except CallFailed as failure:
        if wanted is None:
            # A server without STS: its listing names the caller's buckets all the same.
            return account, f"; its account number is not known either (GetCallerIdentity: {failure.code})"
        raise CredentialsError(
            f"the account of the auditor's own credentials is not known (GetCallerIdentity: {failure.code})"
        ) from failure
    if wanted not in (None, number):
        raise CredentialsError(f"the auditor's own credentials belong to account {number}: name a role to assume")
    return (replace(account, id=number) if len(number) == 12 and number.isdecimal() else account), ""
