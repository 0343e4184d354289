"""A configuration that is read without the SDK means the same to the SDK; any other is left to the SDK."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from auditor.aws.connection import Connection
from auditor.aws.credentials import CredentialSource
from auditor.aws.endpoint import Services, plain_origin
from auditor.aws.plain import plain
from auditor.aws.session import core_session
from auditor.aws.sigv4 import Credentials

KEYS = "aws_access_key_id = {0}\naws_secret_access_key = {0}\n"


def config(text: str) -> None:
    Path(os.environ["AWS_CONFIG_FILE"]).write_text(text)


def shared(text: str) -> None:
    Path(os.environ["AWS_SHARED_CREDENTIALS_FILE"]).write_text(text)


@pytest.fixture
def no_keys(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name)
    return monkeypatch


def by_the_sdk(profile: str | None) -> tuple[Credentials, str | None]:
    session = core_session(profile)
    frozen = session.get_credentials().get_frozen_credentials()
    return Credentials(frozen.access_key, frozen.secret_key, frozen.token), session.get_config_variable("region")


HOME = "[default]\nregion = eu-west-1\n"
MINE = "[profile mine]\nregion = eu-west-3\n"
ENV = {"AWS_ACCESS_KEY_ID": "e", "AWS_SECRET_ACCESS_KEY": "e"}
READ: list[tuple[str, str, dict[str, str], str | None]] = [
    ("", "", ENV | {"AWS_SESSION_TOKEN": "t"}, None),
    (HOME, "", ENV, None),
    (HOME, "[default]\n" + KEYS.format("s"), {}, None),
    ("[default]\n" + KEYS.format("c"), "", {"AWS_DEFAULT_REGION": "eu-west-2"}, None),
    (MINE + KEYS.format("m"), "", {}, "mine"),
    (MINE, "[mine]\n" + KEYS.format("m"), {"AWS_PROFILE": "mine"}, None),
    ("", "[mine]\naws_session_token = t\n" + KEYS.format("m"), {"AWS_DEFAULT_PROFILE": "mine"}, None),
    (MINE, "[mine]\n" + KEYS.format("m"), ENV, "mine"),
    (MINE, "[mine]\n" + KEYS.format("m"), ENV | {"AWS_PROFILE": "mine"}, None),
    ("", "[default]\nregion = eu-west-4\n" + KEYS.format("s"), {}, None),
]
"""The configuration file, the credentials file, variables, and the profile that is asked for."""


def test_read_as_the_sdk_reads(no_keys: pytest.MonkeyPatch) -> None:
    for in_config, in_shared, variables, profile in READ:
        config(in_config)
        shared(in_shared)
        with no_keys.context() as patch:
            for name, value in variables.items():
                patch.setenv(name, value)
            found = plain(profile)
            assert found is not None, (in_config, in_shared, variables)
            expected = by_the_sdk(profile)
            assert (found.get_frozen_credentials(), found.region) == expected, (in_config, in_shared, variables)


def test_configuration_that_only_the_sdk_understands(monkeypatch: pytest.MonkeyPatch) -> None:
    assert plain(None) is not None
    assert plain("nobody") is None
    variables = "AWS_CREDENTIAL_EXPIRATION AWS_USE_FIPS_ENDPOINT AWS_USE_DUALSTACK_ENDPOINT AWS_DATA_PATH"
    others = "AWS_S3_US_EAST_1_REGIONAL_ENDPOINT AWS_CONTAINER_CREDENTIALS_FULL_URI AWS_NEVER_HEARD_OF"
    for variable in f"{variables} {others} HTTPS_PROXY http_proxy".split():
        with monkeypatch.context() as patch:
            patch.setenv(variable, "true")
            assert plain(None) is None, variable
    for missing in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        with monkeypatch.context() as patch:
            patch.delenv(missing)
            assert plain(None) is None, missing
    for text in (
        "[default]\nrole_arn = arn:aws:iam::111122223333:role/r\n",
        "[default]\ns3 =\n  addressing_style = path\n",
        "[default]\nendpoint_url = http://127.0.0.1:1\n",
        "[default]\nca_bundle = mine.pem\n",
        "[default]\nservices = mine\n",
        "[profile default]\nregion = eu-west-1\n",
        "no section\n",
    ):
        config(text)
        assert plain(None) is None, text


def test_name_that_leads_elsewhere() -> None:
    point = "arn:aws:s3:eu-west-1:111122223333:accesspoint/ap"
    for bucket in (point, "b--use1-az4--x-s3", "ap-s3alias", "m.mrap", "A_b"):
        assert plain_origin(Connection(bucket=bucket, region="eu-west-1")) is None, bucket


def test_other_servers_of_a_bucket() -> None:
    services = Services.of(Connection(bucket="b", region="eu-west-1"))
    assert services is not None
    at = [services.s3.url, services.sts.url, services.control_of("111122223333").url]
    assert at == [
        "https://s3.eu-west-1.amazonaws.com",
        "https://sts.eu-west-1.amazonaws.com",
        "https://111122223333.s3-control.eu-west-1.amazonaws.com",
    ]
    assert [one.service for one in (services.s3, services.sts, services.control)] == ["s3", "sts", "s3"]


async def test_keys_that_change_in_the_environment_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    source = CredentialSource(clock=lambda: now[0])
    assert (await source.current()).access_key == "testing"
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "renewed")
    assert (await source.current()).access_key == "testing"
    now[0] = 1.5
    assert source.at_hand() is None
    assert (await source.current()).access_key == "renewed"
