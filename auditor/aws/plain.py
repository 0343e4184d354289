"""Read the AWS configuration without the SDK, if it is plain: access keys, a region, endpoints, and nothing else.

The SDK's imports and clients take more CPU than an audit of a hundred objects. Lambda functions have a plain
configuration: their keys are in the environment. In every other case the SDK has to read the configuration. The
partition follows from the region.
"""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct

from auditor.aws.sigv4 import Credentials
from auditor.errors import UsageError

_VARIABLES: Final = frozenset(
    {
        "AWS_ACCESS_KEY_ID",
        "AWS_ACCOUNT_ID",
        "AWS_CA_BUNDLE",
        "AWS_CONFIG_FILE",
        "AWS_DEFAULT_PROFILE",
        "AWS_DEFAULT_REGION",
        "AWS_EC2_METADATA_DISABLED",
        "AWS_EXECUTION_ENV",
        "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS",
        "AWS_MAX_ATTEMPTS",
        "AWS_PAGER",
        "AWS_PROFILE",
        "AWS_REGION",
        "AWS_RETRY_MODE",
        "AWS_SDK_UA_APP_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SECURITY_TOKEN",
        "AWS_SESSION_TOKEN",
        "AWS_SHARED_CREDENTIALS_FILE",
        "BOTO_DISABLE_CRT",
    }
)
"""The SDK's variables that this module reads, or that change no request. With any other, the SDK reads everything."""
_HARMLESS: Final = ("AWS_ENDPOINT_URL", "AWS_LAMBDA_", "AWS_XRAY_")
_KEYS: Final = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
_ENTRIES: Final = frozenset({*_KEYS, "region", "output", "cli_pager"})
"""The entries of a plain profile."""
_REGION: Final = re.compile(r"(us|eu|ap|sa|ca|me|af|il|mx)-[a-z]+-[0-9]+")
"""The regions of the partition aws (partitions.json of botocore). Other partitions have other host names."""


class PlainConfiguration(Struct, frozen=True):
    """An AWS configuration that was read without the SDK.

    region: the default region; None if there is none. of_environment: True if the credentials come from environment
    variables, which the process may change later.
    """

    region: str | None
    credentials: Credentials
    of_environment: bool

    def get_frozen_credentials(self) -> Credentials:
        """Return the credentials. If they come from environment variables, read the variables again."""
        return (_environment_keys() if self.of_environment else None) or self.credentials


def plain(profile: str | None) -> PlainConfiguration | None:
    """Read the configuration of a profile (None: the default one) without the SDK; None if only the SDK can read it."""
    if any(_is_special(name, value) for name, value in os.environ.items()) or not no_proxy():
        return None
    chosen = [name for name in (profile, _variable("AWS_DEFAULT_PROFILE"), _variable("AWS_PROFILE")) if name]
    try:
        entries = _entries(chosen[0] if chosen else None)
    except (OSError, ValueError, LookupError):
        return None  # the SDK finds the fault, and names it
    if not entries.keys() <= _ENTRIES:
        return None
    own = None if profile else _environment_keys()
    if own is None and (_variable("AWS_ACCESS_KEY_ID") and not profile):
        return None
    keys = own or _profile_keys(entries)
    return keys and PlainConfiguration(_variable("AWS_DEFAULT_REGION") or entries.get("region"), keys, own is not None)


def _variable(name: str) -> str:
    return os.environ.get(name, "")


def _is_special(name: str, value: str) -> bool:
    """True if this environment variable can change a request in a way that only the SDK knows."""
    return (name.startswith(("AWS_", "BOTO_")) and name not in _VARIABLES and not name.startswith(_HARMLESS)) or (
        name in ("AWS_PROFILE", "AWS_DEFAULT_PROFILE") and not value
    )


def no_proxy() -> bool:
    """True if neither the environment nor the system sets a proxy."""
    if sys.platform != "linux":  # the system has settings of its own
        from urllib.request import getproxies  # imports email and http

        return getproxies().keys() <= {"no"}
    return not any(value for name, value in os.environ.items() if _names_proxy(name.lower()))


def _names_proxy(name: str) -> bool:
    return name.endswith("_proxy") and name != "no_proxy"


def _environment_keys() -> Credentials | None:
    access, secret = _variable("AWS_ACCESS_KEY_ID"), _variable("AWS_SECRET_ACCESS_KEY")
    token = os.environ.get("AWS_SECURITY_TOKEN", _variable("AWS_SESSION_TOKEN"))
    return Credentials(access, secret, token or None) if access and secret else None


def _profile_keys(entries: Mapping[str, str]) -> Credentials | None:
    access, secret, token = (entries.get(name) for name in _KEYS)
    return Credentials(access, secret, token or None) if access and secret else None


def _entries(profile: str | None) -> dict[str, str]:
    """Return the settings of a profile. Raises LookupError if the profile is missing, ValueError if both AWS files have
    access keys for it.
    """
    name = profile or "default"
    config = _section("AWS_CONFIG_FILE", "config", "default" if name == "default" else f"profile {name}")
    shared = _section("AWS_SHARED_CREDENTIALS_FILE", "credentials", name)
    if config is None and shared is None:
        if profile is not None:
            raise LookupError(profile)
        return {}
    found, keys = config or {}, shared or {}
    if any(name in found for name in _KEYS) and any(name in keys for name in _KEYS):
        raise ValueError("keys in two files")
    return found | keys


def _section(variable: str, file: str, name: str) -> dict[str, str] | None:
    """Return a section of an AWS file; None if the file or the section does not exist.

    variable: the environment variable that may name the file. file: the file's usual name in ~/.aws. name: the section.
    """
    path = Path(_variable(variable) or f"~/.aws/{file}").expanduser()
    if not path.exists():
        return None
    from configparser import Error, RawConfigParser  # most functions have no such file

    parser = RawConfigParser(default_section="")
    try:
        parser.read_string(path.read_text("utf-8"))
    except Error as error:
        raise ValueError("not readable") from error
    if parser.has_section("profile default"):
        raise ValueError("a second default profile")
    return dict(parser.items(name)) if parser.has_section(name) else None


def host_of(service: str, region: str) -> str | None:
    """Return the host name of a service in a region; None if only the SDK can tell it."""
    if not _REGION.fullmatch(region):
        return None
    if service == "s3" and region == "us-east-1":
        return "s3.amazonaws.com"
    return f"{service}.{region}.amazonaws.com"


def custom_endpoint(service: str, endpoint_url: str | None, profile: str | None) -> str | None:
    """Return the endpoint URL that the user set for a service; None if AWS's own is to be used.

    The first that is set counts: endpoint_url (the flag), AWS_ENDPOINT_URL_ with the name of the service (such as
    AWS_ENDPOINT_URL_S3), AWS_ENDPOINT_URL, the profile.
    """
    if endpoint_url:
        return endpoint_url
    if _variable("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS").lower() == "true":
        return None
    if found := _variable(f"AWS_ENDPOINT_URL_{service.upper().replace('-', '_')}") or _variable("AWS_ENDPOINT_URL"):
        return found
    if plain(profile) is not None:
        return None
    from auditor.aws.profiles import endpoint_of_profile  # imports the SDK

    return endpoint_of_profile(profile)


def certificates() -> str:
    """Return the path of the certificates that the SDK trusts if no profile names others. Raises UsageError."""
    named = _variable("AWS_CA_BUNDLE") or _variable("REQUESTS_CA_BUNDLE")
    if named:
        return named
    for package in ("certifi", "botocore"):
        found = importlib.util.find_spec(package)
        if found is not None and found.origin:
            return str(Path(found.origin).with_name("cacert.pem"))
    raise UsageError("no trusted certificates are installed: install certifi, or set AWS_CA_BUNDLE")


def is_web_address(url: str) -> bool:
    """True if the text is an http or https URL with a host and, if it names a port, a valid one."""
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # brackets without an IPv6 address, or a port above 65535
        return False


def check_endpoint(url: str | None, setting: str = "--endpoint-url") -> None:
    """Raise UsageError unless the URL is None or an http(s) URL with a host. setting: its name in the message."""
    if url is not None and not is_web_address(url):
        raise UsageError(
            f"{setting} {url!r} is not a URL: write it like https://s3.example.net or http://127.0.0.1:9000"
        )


@cache
def partition_of(region: str | None) -> str:
    """Return the partition of a region (aws, aws-cn ..) by botocore's table; "aws" for None and for unknown regions."""
    from botocore import exceptions, session  # few runs ask for a partition

    try:
        return str(session.Session().get_partition_for_region(region)) if region else "aws"
    except exceptions.UnknownRegionError:
        return "aws"
