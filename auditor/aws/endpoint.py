"""Where a bucket's requests go, and what they are signed for: what the SDK would do, asked of the SDK itself.

Partitions, FIPS, dualstack, acceleration, the addressing style, access points, endpoints in the environment and in the
AWS files: all of it is botocore's to decide. It makes one request here, and the request is caught before it is sent.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from botocore.awsrequest import AWSResponse
from botocore.config import Config
from botocore.httpsession import ProxyConfiguration, get_cert_path
from botocore.utils import get_environ_proxies

from auditor.aws import session as aws
from auditor.aws.failures import sdk_errors
from auditor.errors import UsageError

if TYPE_CHECKING:  # the engines import this module
    from auditor.aws.connection import Connection

_PORTS: Final = {"http": 80, "https": 443}
_ALGORITHM: Final = "AWS4-HMAC-SHA256 Credential="


@dataclass(frozen=True, slots=True)
class Origin:
    """One bucket's server.

    host: a name or an address, without brackets; what to connect to, and the name that its certificate must bear.
    host_header: the same as a request says it, with a port that is not the scheme's own. path_prefix: what comes before
    `/KEY`, percent-encoded: "", `/BUCKET`, or an endpoint's own path before it. region, service: of the signature.
    """

    scheme: str
    host: str
    port: int
    host_header: str
    path_prefix: str
    region: str
    service: str

    @property
    def url(self) -> str:
        """Scheme, host and port alone."""
        return f"{self.scheme}://{self.host_header}"


def resolve_endpoint(connection: Connection) -> Origin:
    """The bucket's origin. Blocking: it reads files. Raises UsageError, or CredentialsError where there is no profile.

    An access point's ARN works as the SDK does it, on Outposts too; a multi-Region one and a directory bucket do not.
    """
    return origin_of(*_caught_request(connection))


def origin_of(url: str, authorization: str) -> Origin:
    """The origin to which a request of the SDK's went, from its URL without a key and its Authorization header."""
    aws.check_endpoint(url, "the S3 endpoint")
    if not authorization.startswith(_ALGORITHM):
        raise UsageError("S3 wants other signatures there than those of AWS Signature Version 4: use another --engine")
    _, _, region, service, _ = authorization.removeprefix(_ALGORITHM).partition(",")[0].split("/")
    parts = urlsplit(url)
    host = parts.hostname or ""
    port = parts.port or _PORTS[parts.scheme]
    named = f"[{host}]" if ":" in host else host
    return Origin(
        scheme=parts.scheme,
        host=host,
        port=port,
        host_header=named if port == _PORTS[parts.scheme] else f"{named}:{port}",
        path_prefix=parts.path.rstrip("/"),
        region=region,
        service=service,
    )


class _Nothing:
    """The body of an answer that never came."""

    def stream(self) -> Iterator[bytes]:
        return iter(())


def _caught_request(connection: Connection) -> tuple[str, str]:
    """URL and Authorization of the SDK's HeadBucket: it is answered here, so that nothing is sent.

    Not a presigned URL: those are for the global endpoint, whatever the region. The keys keep the SDK from looking for
    credentials, which can take seconds, and which this does not need.
    """
    caught: list[tuple[str, str]] = []

    def answer(request: Any, **_: Any) -> AWSResponse:
        if request.method != "HEAD":
            raise UsageError(
                f"{connection.bucket!r} is a directory bucket or leads to one: it has no ACLs, and is not supported"
            )
        authorization = request.headers.get("Authorization", b"")
        caught.append((request.url, authorization.decode() if isinstance(authorization, bytes) else authorization))
        return AWSResponse(request.url, 200, {}, _Nothing())

    session = aws.make_session(connection.profile, connection.region)
    with sdk_errors("HeadBucket"):
        client = session.client(
            "s3",
            region_name=connection.region or session.region_name or "us-east-1",
            endpoint_url=connection.endpoint_url,
            aws_access_key_id="unused",
            aws_secret_access_key="unused",  # noqa: S106 - signs what is not sent
            config=Config(**aws.client_options(connection)),
        )
        try:
            client.meta.events.register("before-send.s3", answer)
            client.head_bucket(Bucket=connection.bucket)
        finally:
            client.close()
    return caught[0]


def tls_context(connection: Connection) -> ssl.SSLContext:
    """TLS 1.2 or later, verified against the certificates that the SDK would take, for HTTP/1.1. Blocking.

    They are those of AWS_CA_BUNDLE, else of the profile's ca_bundle, of REQUESTS_CA_BUNDLE, or the SDK's own. An empty
    setting is none: the SDK verifies nothing then, and this always does. Raises UsageError.
    """
    configured = aws.core_session(connection.profile).get_config_variable("ca_bundle")
    path = configured or os.environ.get("REQUESTS_CA_BUNDLE") or get_cert_path(True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_verify_locations(path)
    except OSError as error:  # what OpenSSL raises is one, too
        raise UsageError(
            f"no certificates can be read from {path!r} ({error.strerror or type(error).__name__}):"
            " fix AWS_CA_BUNDLE, or ca_bundle in the AWS configuration"
        ) from error
    return context


def proxy_for(origin: Origin) -> str | None:
    """URL of the HTTP proxy that HTTP_PROXY or HTTPS_PROXY names for the origin, unless NO_PROXY does; else None."""
    proxy = ProxyConfiguration(proxies=get_environ_proxies(origin.url)).proxy_url_for(origin.url)
    if not proxy:
        return None
    # SOCKS has become http://socks5://..; not quoted, for it may hold a password.
    if proxy.count("://") > 1 or not aws.is_web_address(proxy):
        raise UsageError(
            f"{origin.scheme.upper()}_PROXY is not the URL of an HTTP proxy: write it like http://proxy.example:3128"
        )
    return str(proxy)
