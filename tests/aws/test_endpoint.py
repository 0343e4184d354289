"""Requests go to the server of the SDK's own client, in every partition and under every setting."""

from __future__ import annotations

import asyncio
import os
import ssl
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.awsrequest import AWSResponse

from auditor.aws import session as aws
from auditor.aws.connection import Connection
from auditor.aws.endpoint import Origin, origin_of, proxy_for, resolve_endpoint, tls_context
from auditor.aws.sigv4 import encode_key
from auditor.errors import UsageError
from tests.support.servers.ends import streams_served

BUCKET = "a-bucket"
KEY = "a folder//x+y"


class _Empty:
    def stream(self) -> Iterator[bytes]:
        return iter(())


def sent_by_the_sdk(connection: Connection) -> tuple[str, str]:
    """URL, without its scheme's own port, and region/service of the GET that the SDK engines' client sends for KEY."""
    seen: list[Any] = []

    def caught(request: Any, **_: Any) -> AWSResponse:
        seen.append(request)
        return AWSResponse(request.url, 200, {}, _Empty())

    client = aws.make_client("s3", connection, endpoint_url=connection.endpoint_url)
    client.meta.events.register("before-send.s3", caught)
    client.get_object_acl(Bucket=connection.bucket, Key=KEY)
    client.close()
    scope = seen[0].headers["Authorization"].decode().partition(",")[0].split("/")
    url = seen[0].url.partition("?")[0]
    own = ":443/" if url.startswith("https:") else ":80/"
    return url.replace(own, "/", 1), f"{scope[2]}/{scope[3]}"


def reached_by(origin: Origin) -> tuple[str, str]:
    """URL and region/service of our own GET for KEY."""
    return f"{origin.url}{origin.path_prefix}/{encode_key(KEY)}", f"{origin.region}/{origin.service}"


def write_config(text: str) -> None:
    """The user's configuration file. The keys are for a profile alone: a named profile takes none from elsewhere."""
    Path(os.environ["AWS_CONFIG_FILE"]).write_text(text)


MINE = "[profile mine]\naws_access_key_id = mine\naws_secret_access_key = mine\n"

POINT = "arn:aws:s3:us-west-2:123456789012:accesspoint/name"
OUTPOST = "arn:aws:s3-outposts:us-west-2:123456789012:outpost/op-01/accesspoint/name"
HOME = "[default]\nregion = eu-west-3\n"
FIPS = {"AWS_USE_FIPS_ENDPOINT": "true"}
DUAL = {"AWS_USE_DUALSTACK_ENDPOINT": "true"}
IGNORED = {"AWS_ENDPOINT_URL_S3": "http://127.0.0.1:9", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true"}
PLACES: list[tuple[dict[str, str], dict[str, str], str, str]] = [
    ({}, {}, "", "a-bucket.s3.amazonaws.com"),
    ({"region": "us-east-1"}, {}, "", "a-bucket.s3.amazonaws.com"),
    ({"region": "aws-global"}, {}, "", "a-bucket.s3.amazonaws.com"),
    ({"region": "eu-west-1"}, {}, "", "a-bucket.s3.eu-west-1.amazonaws.com"),
    ({"region": "us-gov-west-1"}, {}, "", "a-bucket.s3.us-gov-west-1.amazonaws.com"),
    ({"region": "cn-north-1"}, {}, "", "a-bucket.s3.cn-north-1.amazonaws.com.cn"),
    ({"region": "us-iso-east-1"}, {}, "", "a-bucket.s3.us-iso-east-1.c2s.ic.gov"),
    ({"region": "eu-north-9"}, {}, "", "a-bucket.s3.eu-north-9.amazonaws.com"),
    ({"region": "eu-west-1"}, IGNORED, "", "a-bucket.s3.eu-west-1.amazonaws.com"),
    ({"region": "us-gov-west-1"}, FIPS | DUAL, "", "a-bucket.s3-fips.dualstack.us-gov-west-1.amazonaws.com"),
    ({"bucket": POINT}, {}, "", "name-123456789012.s3-accesspoint.us-west-2.amazonaws.com"),
    ({"bucket": OUTPOST}, {}, "", "name-123456789012.op-01.s3-outposts.us-west-2.amazonaws.com"),
    ({"bucket": "name-1-s3alias", "region": "us-west-2"}, {}, "", "name-1-s3alias.s3.us-west-2.amazonaws.com"),
    ({}, {}, HOME, "a-bucket.s3.eu-west-3.amazonaws.com"),
    ({}, FIPS, HOME, "a-bucket.s3-fips.eu-west-3.amazonaws.com"),
    ({}, DUAL, HOME, "a-bucket.s3.dualstack.eu-west-3.amazonaws.com"),
    ({"bucket": "a.b"}, {}, HOME, "s3.eu-west-3.amazonaws.com/a.b"),
    ({"bucket": "An_Old"}, {}, HOME, "s3.eu-west-3.amazonaws.com/An_Old"),
    ({}, {}, f"{HOME}s3 =\n    addressing_style = path\n", "s3.eu-west-3.amazonaws.com/a-bucket"),
    ({}, {}, f"{HOME}s3 =\n    addressing_style = virtual\n", "a-bucket.s3.eu-west-3.amazonaws.com"),
    ({}, {}, f"{HOME}s3 =\n    use_accelerate_endpoint = true\n", "a-bucket.s3-accelerate.amazonaws.com"),
    ({}, {}, f"{HOME}s3 =\n    signature_version = s3\n", "a-bucket.s3.eu-west-3.amazonaws.com"),
]
"""Fields of the connection, variables, the configuration file, and the host with the path before the key."""


def test_aws_is_where_the_sdk_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    failures: list[object] = []
    for fields, variables, text, place in PLACES:
        with monkeypatch.context() as patch:
            for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
                patch.delenv(name)
            for name, value in variables.items():
                patch.setenv(name, value)
            write_config(text)
            connection = Connection(**{"bucket": BUCKET, **fields})  # type: ignore[arg-type]
            origin = resolve_endpoint(connection)
            found = (origin.scheme, origin.port, origin.host_header, origin.host + origin.path_prefix)
            if found != ("https", 443, origin.host, place):
                failures.append((fields, variables, text, found))
            if (reached := reached_by(origin)) != (sent := sent_by_the_sdk(connection)):
                failures.append((fields, variables, text, reached, sent))
    assert not failures, failures


GATEWAYS = {
    "http://127.0.0.1:9000/": ("http", "127.0.0.1", 9000, "127.0.0.1:9000", "/a-bucket"),
    "http://127.0.0.1:80": ("http", "127.0.0.1", 80, "127.0.0.1", "/a-bucket"),
    "http://127.0.0.1:443": ("http", "127.0.0.1", 443, "127.0.0.1:443", "/a-bucket"),
    "https://gateway.example": ("https", "gateway.example", 443, "gateway.example", "/a-bucket"),
    "https://gateway.example:443/s3/v1/": ("https", "gateway.example", 443, "gateway.example", "/s3/v1/a-bucket"),
    "http://[::1]:9000": ("http", "::1", 9000, "[::1]:9000", "/a-bucket"),
    "https://[::1]": ("https", "::1", 443, "[::1]", "/a-bucket"),
}


@pytest.mark.parametrize("setting", ["flag", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "profile"])
def test_an_endpoint_of_the_users_own(setting: str, monkeypatch: pytest.MonkeyPatch) -> None:
    failures: list[object] = []
    for url, expected in GATEWAYS.items():
        if setting == "profile":
            write_config(f"{MINE}endpoint_url = {url}\n")
        elif setting != "flag":
            monkeypatch.setenv(setting, url)
        connection = Connection(
            bucket=BUCKET,
            region="eu-west-1",
            endpoint_url=url if setting == "flag" else None,
            profile="mine" if setting == "profile" else None,
        )
        origin = resolve_endpoint(connection)
        found = (origin.scheme, origin.host, origin.port, origin.host_header, origin.path_prefix)
        if found != expected:
            failures.append((url, found))
        if (reached := reached_by(origin)) != (sent := sent_by_the_sdk(connection)):
            failures.append((url, reached, sent))
    assert not failures, failures


UNRESOLVED = [
    {"bucket": "a-bucket--use1-az4--x-s3"},
    {"bucket": "a-point--use1-az4--xa-s3"},
    {"bucket": "arn:aws:s3::123456789012:accesspoint/mfzwi23gnjvgw.mrap"},
    {"bucket": "a b"},
    {"region": "no region"},
    {"endpoint_url": "gateway.example"},
    {"endpoint_url": "ftp://gateway.example"},
    {"endpoint_url": "http://gateway.example:0"},
    {"endpoint_url": "http://gateway.example:99999"},
    {"endpoint_url": "http://gateway.example?a=b"},
    {"endpoint_url": "http://b\u00fccher.example"},
    {"profile": "nobody"},
]


def refused(resolved: Callable[[Connection], object], **fields: str) -> str:
    """The refusal, or that there is none."""
    try:
        resolved(Connection(**{"bucket": BUCKET, "region": "us-east-1", **fields}))  # type: ignore[arg-type]
    except UsageError as error:
        return str(error)
    return "no refusal"


def test_settings_that_cannot_be_resolved_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [fields for fields in UNRESOLVED if refused(resolve_endpoint, **fields) == "no refusal"] == []
    assert "'nobody'" in refused(tls_context, profile="nobody")
    for authorization in ("AWS4-ECDSA-P256-SHA256 Credential=x/20260102/s3/aws4_request, ", "AWS x:y", ""):
        with pytest.raises(UsageError, match="Signature Version 4"):
            origin_of("https://mfzwi23gnjvgw.mrap.accesspoint.s3-global.amazonaws.com/", authorization)
    write_config("[default\n")
    assert "configuration files" in refused(resolve_endpoint)
    assert "configuration files" in refused(tls_context)
    write_config("")
    monkeypatch.setenv("AWS_USE_FIPS_ENDPOINT", "true")
    assert "the AWS SDK refuses the settings" in refused(resolve_endpoint, region="cn-north-1")
    for name in ("AWS_DATA_PATH", "AWS_CA_BUNDLE"):
        monkeypatch.setenv(name, "anything")  # the environment settles what a profile could say
    assert "'nobody'" in refused(tls_context, profile="nobody")


@pytest.fixture
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "REQUEST_METHOD"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    return monkeypatch


def at(url: str) -> Origin:
    return resolve_endpoint(Connection(bucket=BUCKET, endpoint_url=url))


HTTPS = "https://gateway.example:8443/below"
HTTP = "http://127.0.0.1:9000"


def test_a_proxy_for_each_scheme_and_hosts_that_go_past_it(no_proxies: pytest.MonkeyPatch) -> None:
    assert proxy_for(at(HTTPS)) is proxy_for(at(HTTP)) is None
    no_proxies.setenv("HTTPS_PROXY", "http://user:pass@proxy.example:3128")
    no_proxies.setenv("http_proxy", "proxy.example:3129")
    assert proxy_for(at(HTTPS)) == "http://user:pass@proxy.example:3128"
    assert proxy_for(at(HTTP)) == "http://proxy.example:3129"
    for bypass in ("127.0.0.1", "other, 127.0.0.1:9000", "*"):
        no_proxies.setenv("NO_PROXY", bypass)
        assert proxy_for(at(HTTP)) is None, bypass
    no_proxies.setenv("NO_PROXY", ".amazonaws.com")
    assert proxy_for(resolve_endpoint(Connection(bucket=BUCKET))) is None
    assert proxy_for(at(HTTPS)) is not None


@pytest.mark.parametrize("proxy", ["http://secret@:3128", "http://secret:word@proxy:99999", "socks5://secret@p:1080"])
def test_a_proxy_that_is_none(proxy: str, no_proxies: pytest.MonkeyPatch) -> None:
    no_proxies.setenv("HTTPS_PROXY", proxy)
    with pytest.raises(UsageError, match="HTTPS_PROXY") as caught:
        proxy_for(at(HTTPS))
    assert "secret" not in str(caught.value)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate of its own for 127.0.0.1, with its key in the same file."""
    path = tmp_path_factory.mktemp("tls") / "server.pem"
    new = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    named = ["-subj", "/CN=a server", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run(["openssl", *new, *named, "-keyout", path, "-out", path], check=True, capture_output=True)
    return path


@pytest.fixture
def no_bundles(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in ("AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


async def agreed(
    context: ssl.SSLContext, certificate: Path, *, name: str = "127.0.0.1", newest: int
) -> tuple[str, str]:
    """ALPN protocol and TLS version of a connection to a server that knows no TLS beyond `newest`."""
    offered = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    offered.load_cert_chain(certificate)
    offered.set_alpn_protocols(["h2", "http/1.1"])
    offered.maximum_version = ssl.TLSVersion(newest)

    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with streams_served(hang_up, offered) as (host, port):
        _, writer = await asyncio.open_connection(host, port, ssl=context, server_hostname=name)
        tls = writer.get_extra_info("ssl_object")
        writer.transport.abort()
        return tls.selected_alpn_protocol(), tls.version()


@pytest.mark.parametrize("setting", ["AWS_CA_BUNDLE", "profile", "REQUESTS_CA_BUNDLE"])
async def test_certificates_that_the_user_trusts(
    setting: str, certificate: Path, no_bundles: pytest.MonkeyPatch
) -> None:
    if setting == "profile":
        write_config(f"{MINE}ca_bundle = {certificate}\n")
        no_bundles.setenv("REQUESTS_CA_BUNDLE", "never-looked-at.pem")
        context = tls_context(Connection(bucket=BUCKET, profile="mine"))
    else:
        no_bundles.setenv(setting, str(certificate))
        context = tls_context(Connection(bucket=BUCKET))
    assert await agreed(context, certificate, newest=ssl.TLSVersion.TLSv1_3) == ("http/1.1", "TLSv1.3")
    assert await agreed(context, certificate, newest=ssl.TLSVersion.TLSv1_2) == ("http/1.1", "TLSv1.2")
    with pytest.raises(ssl.SSLCertVerificationError):
        await agreed(context, certificate, name="elsewhere.example", newest=ssl.TLSVersion.TLSv1_3)


@pytest.mark.parametrize("setting", [None, "AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE"])
async def test_a_server_that_nobody_vouches_for(
    setting: str | None, certificate: Path, no_bundles: pytest.MonkeyPatch
) -> None:
    if setting is not None:
        no_bundles.setenv(setting, "")  # the SDK reads that as: verify nothing
    context = tls_context(Connection(bucket=BUCKET))
    assert context.cert_store_stats()["x509_ca"] > 50
    with pytest.raises(ssl.SSLCertVerificationError):
        await agreed(context, certificate, newest=ssl.TLSVersion.TLSv1_3)


def test_certificates_that_cannot_be_read(tmp_path: Path, no_bundles: pytest.MonkeyPatch) -> None:
    (tmp_path / "empty.pem").write_text("")
    (tmp_path / "folder.pem").mkdir()
    for name in ("missing.pem", "empty.pem", "folder.pem"):
        no_bundles.setenv("AWS_CA_BUNDLE", str(tmp_path / name))
        with pytest.raises(UsageError, match=rf"{name}.*AWS_CA_BUNDLE"):
            tls_context(Connection(bucket=BUCKET))
