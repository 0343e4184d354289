"""Assume a role of another account, and share its temporary credentials between all connections to that account."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from auditor.aws.connection import Connection, CredentialProvider, Load
from auditor.aws.failures import DENIED, explain
from auditor.aws.plain import custom_endpoint
from auditor.errors import AuditorError, CallFailed, CredentialsError

SESSION: Final = "s3-auditor"
"""The name of the role's session, which CloudTrail shows with each call."""
SECONDS: Final = 3600
"""The length of a session. A role that assumes another one gets no longer session (IAM User Guide, "Role chaining")."""
_ATTEMPTS: Final = 6


class Role(Struct, frozen=True):
    """A role to assume. arn: `arn:PARTITION:iam::ACCOUNT:role/NAME`. external_id: the text that the role's trust policy
    asks for; None if it asks for none.
    """

    arn: str
    external_id: str | None = None

    @property
    def account(self) -> str:
        """The 12 digits of the role's account."""
        return self.arn.split(":")[4]


Session = Mapping[str, Any]
"""Temporary credentials as botocore's RefreshableCredentials take them: access_key, secret_key, token, expiry_time."""


class RoleCredentials:
    """The temporary credentials of one role. They renew themselves before they expire.

    Nothing here falls back to other credentials: if the role cannot be assumed, each method raises CredentialsError.
    assume: begins a session of the role, by one blocking call of STS AssumeRole.
    """

    def __init__(self, role: Role, assume: Callable[[Role], Session]) -> None:
        self.role = role
        self._session = partial(assume, role)
        self._lock = threading.Lock()
        self._provider: CredentialProvider | None = None

    def current(self, refused: CredentialProvider | None = None) -> CredentialProvider:
        """Return the credentials that all connections share. Blocks while the role is assumed for the first time.

        refused: credentials that S3 has refused as expired; if they are the shared ones, the role is assumed anew.
        """
        with self._lock:
            if self._provider is None or self._provider is refused:
                from botocore.credentials import RefreshableCredentials  # imports the SDK

                self._provider = RefreshableCredentials.create_from_metadata(
                    self._session(), refresh_using=self._session, method="assume-role"
                )
            return self._provider

    def loader(self) -> Load:
        """Return a function for a CredentialSource: its first call returns the shared credentials, and each later call
        says that those of the call before were refused.
        """
        last: CredentialProvider | None = None

        def load() -> CredentialProvider:
            nonlocal last
            last = self.current(last)
            return last

        return load

    def __repr__(self) -> str:
        return f"RoleCredentials({self.role.arn!r})"


def assuming(connection: Connection) -> Callable[[Role], Session]:
    """Return a function that assumes a role with the own credentials, those of the connection's profile.

    connection: its region is that of STS, whose session tokens are valid in every region. Behind a custom endpoint of
    S3, STS is called at that endpoint, or at AWS_ENDPOINT_URL_STS; never at AWS.
    """
    own = replace(connection, role=None)
    endpoint = custom_endpoint("sts", None, own.profile) or custom_endpoint("s3", own.endpoint_url, own.profile)

    def assume(role: Role) -> Session:
        from auditor.aws.session import open_calls  # imports the SDK

        arguments = {"RoleArn": role.arn, "RoleSessionName": SESSION, "DurationSeconds": SECONDS}
        if role.external_id is not None:
            arguments["ExternalId"] = role.external_id
        try:
            with open_calls("sts", own, endpoint_url=endpoint, attempts=_ATTEMPTS) as call:
                return _checked(call("AssumeRole", **arguments), role)
        except CallFailed as failure:
            raise CredentialsError(_refusal(role, failure)) from failure
        except CredentialsError as error:
            raise CredentialsError(f"the role {role.arn} is not assumed: {error}") from error
        except AuditorError as error:
            raise CredentialsError(f"the role {role.arn} cannot be assumed: {error}") from error

    return assume


def _checked(reply: Mapping[str, Any], role: Role) -> Session:
    """Return the credentials of an answer. Raises CredentialsError for one that lacks a part, or that is for another
    account.
    """
    try:
        found, arn = reply["Credentials"], str(reply["AssumedRoleUser"]["Arn"])
        session = {
            "access_key": found["AccessKeyId"],
            "secret_key": found["SecretAccessKey"],
            "token": found["SessionToken"],
            "expiry_time": found["Expiration"].isoformat(),
        }
    except (KeyError, TypeError, AttributeError) as error:
        raise CredentialsError("the answer of AssumeRole lacks credentials") from error
    if arn.split(":")[4:5] != [role.account]:
        raise CredentialsError(f"AssumeRole answered for {arn[:200]!r}, which is not in account {role.account}")
    return session


def _refusal(role: Role, failure: CallFailed) -> str:
    """Describe a failed AssumeRole in one sentence, with the fix."""
    if failure.code in DENIED:
        return (
            f"the role {role.arn} cannot be assumed ({failure.code}): allow sts:AssumeRole on it, and let its trust"
            " policy name this identity and the external_id of the entry"
        )
    sentence = explain("STS", failure, allow="sts:AssumeRole", absent="check the role")
    return f"the role {role.arn} cannot be assumed: {sentence}"
