"""Ask botocore for the request to a bucket, the trusted certificates, and the proxy. Its import is dear."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

from botocore.awsrequest import AWSResponse
from botocore.config import Config
from botocore.httpsession import ProxyConfiguration, get_cert_path
from botocore.utils import get_environ_proxies

from auditor.aws.connection import Connection
from auditor.aws.sdk_errors import sdk_errors
from auditor.aws.session import client_options, core_session, make_session
from auditor.errors import UsageError


def caught_request(connection: Connection) -> tuple[str, str]:
    """Let the SDK make a HeadBucket request that is not sent, and return its URL and Authorization header.

    A presigned URL would not do: it names the global endpoint in any region. The fake access keys keep the SDK from
    searching for credentials, which can take seconds.
    """
    caught: list[tuple[str, str]] = []

    def answer(request: Any, **_: Any) -> AWSResponse:
        if request.method != "HEAD":
            raise UsageError(
                f"{connection.bucket!r} is a directory bucket or leads to one: it has no ACLs, and is not supported"
            )
        authorization = request.headers.get("Authorization", b"")
        caught.append((request.url, authorization.decode() if isinstance(authorization, bytes) else authorization))
        return AWSResponse(request.url, 200, {}, SimpleNamespace(stream=tuple))  # an empty body

    session = make_session(connection.profile, connection.region)
    with sdk_errors("HeadBucket"):
        client = session.client(
            "s3",
            region_name=connection.region or session.region_name or "us-east-1",
            endpoint_url=connection.endpoint_url,
            aws_access_key_id="unused",
            aws_secret_access_key="unused",  # noqa: S106 - the signed request is not sent
            config=Config(**client_options(connection)),
        )
        try:
            client.meta.events.register("before-send.s3", answer)
            client.head_bucket(Bucket=connection.bucket)
        finally:
            client.close()
    return caught[0]


def certificates_of(profile: str | None) -> str:
    """Return the path of the certificates that the SDK trusts with this profile. Reads the AWS files."""
    configured = core_session(profile).get_config_variable("ca_bundle")
    return str(configured or os.environ.get("REQUESTS_CA_BUNDLE") or get_cert_path(True))


def proxy_to(url: str) -> str | None:
    """Return the URL of the proxy to the server of a URL, from HTTP_PROXY or HTTPS_PROXY; None without one."""
    found: str | None = ProxyConfiguration(proxies=get_environ_proxies(url)).proxy_url_for(url)
    return found or None
