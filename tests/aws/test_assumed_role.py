"""The credentials of an assumed role: shared, renewed, and never replaced by others."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from auditor.aws.assumed_role import Role, RoleCredentials, Session, assuming
from auditor.aws.connection import Connection
from auditor.errors import CredentialsError
from tests.support.servers.accounts import AccountsServer, role_of
from tests.support.servers.stub_calls import Reply

ACCOUNT = "111122223333"
ROLE = Role(role_of(ACCOUNT))


class Sessions:
    """Begins sessions of the given length, and counts them."""

    def __init__(self, length: timedelta) -> None:
        self.length = length
        self.number = 0

    def __call__(self, role: Role) -> Session:
        self.number += 1
        until = datetime.now(UTC) + self.length
        return {
            "access_key": f"key-{self.number}",
            "secret_key": "s",
            "token": "t",
            "expiry_time": until.isoformat(),
        }


def connection(server: AccountsServer) -> Connection:
    return Connection(bucket="b", region="us-east-1", endpoint_url=server.url)


def test_session_is_renewed_before_it_expires() -> None:
    sessions = Sessions(timedelta(minutes=9))  # less than the ten minutes in which botocore has to renew
    provider = RoleCredentials(ROLE, sessions).current()
    assert provider.get_frozen_credentials().access_key == "key-2"
    sessions.length = timedelta(hours=1)
    assert provider.get_frozen_credentials().access_key == "key-3"
    assert provider.get_frozen_credentials().access_key == "key-3"


def test_refused_session_is_replaced_once_for_all_connections() -> None:
    sessions = Sessions(timedelta(hours=1))
    credentials = RoleCredentials(ROLE, sessions)
    first, second = credentials.loader(), credentials.loader()
    old = first()
    assert second() is old
    new = first()
    assert new is not old
    assert second() is new
    assert sessions.number == 2


def test_role_is_assumed_with_its_external_id() -> None:
    with AccountsServer(external_ids={ROLE.arn: "e-1"}) as server:
        with pytest.raises(CredentialsError, match=r"cannot be assumed \(AccessDenied\): allow sts:AssumeRole on it"):
            RoleCredentials(ROLE, assuming(connection(server))).current()
        provider = RoleCredentials(Role(ROLE.arn, "e-1"), assuming(connection(server))).current()
        assert provider.get_frozen_credentials().access_key.startswith(f"ASIA{ACCOUNT}")


def test_answer_for_another_account_is_refused() -> None:
    with AccountsServer() as server:
        answered = server._session

        def other(call: object) -> Reply:
            reply = answered(call)  # type: ignore[arg-type]
            return Reply(reply.status, reply.headers, reply.body.replace(ACCOUNT.encode(), b"999988887777"))

        server._session = other  # type: ignore[method-assign]
        with pytest.raises(CredentialsError, match="which is not in account 111122223333"):
            RoleCredentials(ROLE, assuming(connection(server))).current()


def test_without_own_credentials_nothing_is_assumed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    with AccountsServer() as server:
        with pytest.raises(CredentialsError, match="is not assumed: no usable AWS credentials"):
            RoleCredentials(ROLE, assuming(connection(server))).current()
        assert not server.seen
