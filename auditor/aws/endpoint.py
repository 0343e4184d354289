"""Find the server, the region and the signed service of a bucket's requests, by the rules of the SDK.

botocore knows partitions, FIPS, dualstack, acceleration, addressing styles, access points, and the endpoints in the
environment and in the AWS files. So botocore makes one request, and a handler of ours answers it: nothing is sent.
"""

from __future__ import annotations

import os
import re
import socket
import ssl
from contextlib import suppress
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from auditor.aws.connection import Connection
from auditor.aws.plain import certificates, check_endpoint, custom_endpoint, host_of, is_web_address, no_proxy, plain
from auditor.errors import UsageError
from auditor.text import visible

_PORTS: Final = {"http": 80, "https": 443}
_ALGORITHM: Final = "AWS4-HMAC-SHA256 Credential="
_LABEL: Final = re.compile(r"[a-z0-9][a-z0-9-]{1,61}[a-z0-9]")
"""A bucket's name that can be a part of a host name."""
_HOST: Final = re.compile(r"[A-Za-z0-9.:\[\]-]+")
_PATH: Final = re.compile(r"[A-Za-z0-9/._-]*")
_SDK_ONLY: Final = re.compile(r"--|-s3alias$|\.mrap$|:|/")
"""Names that the SDK resolves to hosts of their own: of directory buckets, access points, and their aliases."""
_PLAIN_REGION: Final = re.compile(r"[a-z0-9-]+")
_ODD_REGION: Final = re.compile(r"fips|global|external")
"""Region names for which the SDK signs with another region."""


class Origin(Struct, frozen=True):
    """The server to which signed requests go, with the region and the service that their signatures name."""

    scheme: str
    host: str
    """A name, or an IP address without brackets. The server's certificate must be issued to it."""
    port: int
    host_header: str
    """The Host header: the host, with the port unless it is the scheme's default."""
    path_prefix: str
    """The percent-encoded path before `/OBJECT-KEY`: "", `/BUCKET`, or either of them after the endpoint's own path."""
    region: str
    service: str

    @property
    def url(self) -> str:
        """The scheme, host and port as a URL without a path."""
        return f"{self.scheme}://{self.host_header}"


def resolve_endpoint(connection: Connection) -> Origin:
    """Find the server for the bucket's requests. Blocks, because it reads the AWS files.

    The bucket may be an access point's ARN, on Outposts too. Raises UsageError for a multi-Region access point, a
    directory bucket, or a missing profile.
    """
    if (origin := plain_origin(connection)) is not None:
        return origin
    from auditor.aws.sdk_endpoint import caught_request  # imports the SDK

    return origin_of(*caught_request(connection))


def origin_of(url: str, authorization: str) -> Origin:
    """Return the server of a request that the SDK made, and the region and service that its signature names.

    url: the request's URL, without an object key. authorization: its Authorization header.
    """
    check_endpoint(url, "the S3 endpoint")
    if not authorization.startswith(_ALGORITHM):
        raise UsageError("S3 needs a signature other than AWS Signature Version 4 there: use another --engine")
    _, _, region, service, _ = authorization.removeprefix(_ALGORITHM).partition(",")[0].split("/")
    return origin_at(url, region, service)


def origin_at(url: str, region: str, service: str) -> Origin:
    """Return the server at a URL, with the region and the service of its signatures."""
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


def plain_origin(connection: Connection) -> Origin | None:
    """Find the server of the bucket as the SDK would, but without the SDK; None if only the SDK can find it."""
    endpoint, bucket = custom_endpoint("s3", connection.endpoint_url, connection.profile), connection.bucket
    origin = service_origin("s3", connection, endpoint)
    if origin is None or _SDK_ONLY.search(bucket):
        return None
    if endpoint:
        return replace(origin, path_prefix=f"{origin.path_prefix}/{bucket}") if _PATH.fullmatch(bucket) else None
    host = f"{bucket}.{origin.host}"
    return replace(origin, host=host, host_header=host) if _LABEL.fullmatch(bucket) else None


def service_origin(service: str, connection: Connection, endpoint: str | None) -> Origin | None:
    """Find the server of a whole service, not of a bucket, without the SDK; None if only the SDK can find it.

    service: s3, s3-control or sts. endpoint: the URL that the user set; None for AWS's own.
    """
    configuration = plain(connection.profile)
    if configuration is None:
        return None
    region = connection.region or configuration.region or "us-east-1"
    signed = "s3" if service == "s3-control" else service
    if endpoint is None:
        host = host_of(service, region)
        return None if host is None else origin_at(f"https://{host}", region, signed)
    if not is_web_address(endpoint) or not _PLAIN_REGION.fullmatch(region) or _ODD_REGION.search(region):
        return None
    parts = urlsplit(endpoint)
    odd = not _HOST.fullmatch(parts.netloc) or parts.query or parts.fragment or not _PATH.fullmatch(parts.path)
    return None if odd else origin_at(endpoint, region, signed)


class Services(Struct, frozen=True):
    """The servers for calls that are not on the bucket: S3 itself (ListBuckets), STS, and S3 Control."""

    s3: Origin
    sts: Origin
    control: Origin

    @classmethod
    def of(cls, connection: Connection) -> Services | None:
        """Find the three servers for a connection without the SDK; None if only the SDK can find one of them."""
        custom = custom_endpoint("s3", connection.endpoint_url, connection.profile)
        at_control = os.environ.get("AWS_ENDPOINT_URL_S3_CONTROL")
        s3 = service_origin("s3", connection, custom)
        sts = service_origin("sts", connection, custom_endpoint("sts", None, connection.profile) or custom)
        control = service_origin("s3-control", connection, at_control or custom)
        if s3 is None or sts is None or control is None or len({s3.scheme, sts.scheme, control.scheme}) > 1:
            return None
        return cls(s3, sts, control)

    def control_of(self, account: str) -> Origin:
        """Return the S3 Control server for an account: the account ID comes before the host name, but not before an IP
        address.
        """
        found = self.control
        if _is_address(found.host):
            return found
        return replace(found, host=f"{account}.{found.host}", host_header=f"{account}.{found.host_header}")


def _is_address(host: str) -> bool:
    return ":" in host or host.replace(".", "").isdecimal()


def tls_context(connection: Connection) -> ssl.SSLContext:
    """Make a context for TLS 1.2 or later that trusts the same certificates as the SDK. Reads files.

    The first of these that is set counts: AWS_CA_BUNDLE, the profile's ca_bundle, REQUESTS_CA_BUNDLE, the SDK's own
    file. An empty setting counts as not set; the SDK would then verify no server. Raises UsageError if the certificates
    cannot be read.
    """
    if plain(connection.profile) is not None:
        path = certificates()
    else:
        from auditor.aws.sdk_endpoint import certificates_of  # imports the SDK

        path = certificates_of(connection.profile)
    try:
        state = os.stat(path)
        return _context(path, state.st_mtime_ns, state.st_size)
    except OSError as error:  # ssl.SSLError is a subclass
        raise UsageError(
            f"no certificates can be read from {path!r} ({error.strerror or type(error).__name__}):"
            " fix AWS_CA_BUNDLE, or ca_bundle in the AWS configuration"
        ) from error


@lru_cache(maxsize=4)
def _context(path: str, mtime: int, size: int) -> ssl.SSLContext:
    """Make a TLS context that trusts the certificates of a file, once for each file.

    Reading the SDK's certificates takes the CPU of a hundred calls. mtime, size: the file's. They are part of the cache
    key, so that a changed file is read again.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    context.load_verify_locations(path)
    return context


def proxy_between(connection: Connection) -> str:
    """Return the host name of the proxy on the way to the bucket's server; "" without one. Reads files.

    Raises UsageError if the proxy's URL or the trusted certificates cannot be used.
    """
    origin = resolve_endpoint(connection)
    if origin.scheme == "https":
        tls_context(connection)
    return visible(urlsplit(proxy_for(origin) or "").hostname or "")


def proxy_for(origin: Origin) -> str | None:
    """Return the URL of the proxy to this server, from HTTP_PROXY or HTTPS_PROXY.

    Return None if neither names a proxy, or if NO_PROXY excludes the server. Raises UsageError for a proxy that does
    not speak HTTP.
    """
    if no_proxy():
        return None
    from auditor.aws.sdk_endpoint import proxy_to  # imports the SDK

    if (proxy := proxy_to(origin.url)) is None:
        return None
    # botocore turns a SOCKS proxy into http://socks5://.. The error does not quote the URL: it may hold a password.
    if proxy.count("://") > 1 or not is_web_address(proxy):
        raise UsageError(
            f"{origin.scheme.upper()}_PROXY is not the URL of an HTTP proxy: write it like http://proxy.example:3128"
        )
    return proxy


_SECONDS: Final = 2.0
_QUESTION: Final = b"HEAD / HTTP/1.0\r\n\r\n"


def other_scheme(url: str) -> str | None:
    """Return "http" for an https URL whose server speaks plain HTTP, "https" for an http URL whose server speaks TLS;
    None otherwise. Blocks for some seconds at most. No request with credentials is sent.
    """
    parts = urlsplit(url)
    with suppress(OSError, ValueError):  # ssl.SSLError is an OSError
        secure = parts.scheme == "https"
        address = (parts.hostname or "", parts.port or (443 if secure else 80))
        with socket.create_connection(address, _SECONDS) as connection:
            if secure:
                connection.sendall(_QUESTION)
                return "http" if connection.recv(5) == b"HTTP/" else None
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            # Only the handshake counts: nothing is sent.
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            with context.wrap_socket(connection, server_hostname=parts.hostname):
                return "https"
    return None
