"""Sessions and clients: one place knows how endpoints, profiles, timeouts and retries are set."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import urlsplit

import boto3
import botocore.session
from botocore import exceptions as sdk
from botocore.config import Config
from botocore.loaders import create_loader
from botocore.utils import parse_timestamp

from auditor.aws.first_call import first_call_alone
from auditor.errors import CredentialsError, UsageError
from auditor.model.dates import any_date

if TYPE_CHECKING:  # the engines import this module
    from auditor.aws.connection import Connection

SERVICES: Final = ("dynamodb", "lambda", "s3", "s3control", "sns", "sqs", "sts")
"""Every service that a client may be opened for: the deployed package holds the SDK's data of these alone."""


def custom_endpoint(service: str, endpoint_url: str | None, profile: str | None) -> str | None:
    """The endpoint that the user set for a service (flag, AWS_ENDPOINT_URL_X, AWS_ENDPOINT_URL, profile), or None."""
    if endpoint_url:
        return endpoint_url
    if os.environ.get("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "").lower() == "true":
        return None
    named = os.environ.get(f"AWS_ENDPOINT_URL_{service.upper().replace('-', '_')}")
    if found := named or os.environ.get("AWS_ENDPOINT_URL"):
        return found
    with _configuration(profile):
        session = botocore.session.Session(profile=profile)
        found = session.get_scoped_config().get("endpoint_url")
    return str(found) if found else None


def _unusable(error: sdk.BotoCoreError) -> UsageError:
    return UsageError(f"the AWS configuration files cannot be used: {error}")


def profile_missing(profile: str | None) -> CredentialsError:
    return CredentialsError(f"there is no AWS profile {profile!r}: see `aws configure list-profiles`, or fix --profile")


def is_web_address(url: str) -> bool:
    """An http(s) URL with a host and, if it has a port, one that can be."""
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # brackets that enclose no address, a port beyond 65535
        return False


def check_endpoint(url: str | None, setting: str = "--endpoint-url") -> None:
    """Raise UsageError unless the endpoint is an http(s) URL with a host."""
    if url is None:
        return
    if not is_web_address(url):
        raise UsageError(
            f"{setting} {url!r} is not a URL: write it like https://s3.example.net or http://127.0.0.1:9000"
        )


def client_options(connection: Connection, *, attempts: int = 1) -> dict[str, Any]:
    """botocore Config arguments, for boto3 and aioboto3 alike. attempts: 1 where gather does the retries."""
    options: dict[str, Any] = {
        "connect_timeout": connection.connect_timeout,
        "read_timeout": connection.read_timeout,
        "max_pool_connections": max(1, connection.concurrency),
        "retries": {"total_max_attempts": attempts, "mode": "standard"},
        "request_checksum_calculation": "when_required",
        "response_checksum_validation": "when_required",
        "user_agent_extra": "s3-auditor",
    }
    if custom_endpoint("s3", connection.endpoint_url, connection.profile):
        options["s3"] = {"addressing_style": "path"}
    return options


def make_session(profile: str | None, region: str | None) -> boto3.Session:
    """A boto3 session; raises CredentialsError for a profile that does not exist."""
    core = core_session(profile)
    with _configuration(profile):
        return boto3.Session(botocore_session=core, region_name=region)


def core_session(profile: str | None) -> Any:
    """The botocore session below one, where no client is wanted; raises as make_session does."""
    with _configuration(profile):
        core = with_shared_models(botocore.session.Session(profile=profile))
        core.get_scoped_config()  # else the first setting that is asked for finds out that there is no such profile
        return core


@contextmanager
def _configuration(profile: str | None) -> Iterator[None]:
    """What the user's AWS files raise leaves as ours."""
    try:
        yield
    except sdk.ProfileNotFound as error:
        raise profile_missing(profile) from error
    except sdk.BotoCoreError as error:
        raise _unusable(error) from error


def with_shared_models(core: Any) -> Any:
    """The botocore session, with the service models that this process has read before: a client costs a fifth then."""
    loader = _loader(core.get_config_variable("data_path"))
    loader.search_paths[:] = dict.fromkeys(loader.search_paths)  # boto3 appends its own for each session
    core.register_component("data_loader", loader)
    core.get_component("response_parser_factory").set_parser_defaults(timestamp_parser=parse_date)
    return core


def parse_date(value: Any) -> datetime:
    """A date of an answer, for botocore: its own parser, which knows every form, takes up to 7 % of a call's CPU."""
    try:
        return any_date(value)
    except (TypeError, ValueError):
        return cast(datetime, parse_timestamp(value))


@cache
def _loader(data_path: str | None) -> Any:
    return create_loader(data_path)


def make_client(service: str, connection: Connection, *, endpoint_url: str | None = None, attempts: int = 1) -> Any:
    """A boto3 client of a session of its own: thread-safe to use, blocking to make (it reads files)."""
    session = make_session(connection.profile, connection.region)
    region = connection.region or session.region_name or "us-east-1"
    try:
        client = session.client(
            service,
            region_name=region,
            endpoint_url=endpoint_url,
            config=Config(**client_options(connection, attempts=attempts)),
        )
        return first_call_alone(without_redirects(client))
    except (sdk.BotoCoreError, ValueError) as error:
        raise UsageError(f"the AWS SDK refuses the settings: {error}") from error


def without_redirects(client: Any) -> Any:
    """The client, with one request a call: left alone, botocore asks for the bucket's region and sends the call again.

    It does so for S3 only, and after every HEAD that ends in 400, which is every object under SSE-C.
    """
    client.meta.events.register("before-call.s3", _redirected)
    return client


def _redirected(params: dict[str, Any], **_: Any) -> None:
    params["context"].setdefault("s3_redirect", {})["redirected"] = True
