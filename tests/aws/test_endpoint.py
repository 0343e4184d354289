"""Requests go to the server of the SDK's own client, in every partition and under every setting."""

from __future__ import annotations

import asyncio
import os
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.awsrequest import AWSResponse
from botocore.exceptions import EndpointResolutionError
from botocore.session import Session

from auditor.aws import session as aws
from auditor.aws.connection import Connection
from auditor.aws.endpoint import Origin, origin_of, proxy_for, resolve_endpoint, tls_context
from auditor.aws.sigv4 import encode_key
from auditor.errors import UsageError
from tests.support.servers.ends import streams_served

BUCKET = "a-bucket"
KEY = "a folder//x+y"

SDK = Session()  # a session reads the list of all endpoints anew
REGIONS = [
    (partition, region)
    for partition in SDK.get_available_partitions()
    for region in SDK.get_available_regions("s3", partition)
]
ONE_EACH = sorted(dict(REGIONS).items())
"""The last region of each partition."""


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


def as_the_sdk(**fields: Any) -> Origin:
    """The origin, compared with the SDK on the way."""
    connection = Connection(**{"bucket": BUCKET, **fields})
    origin = resolve_endpoint(connection)
    url = f"{origin.url}{origin.path_prefix}/{encode_key(KEY)}"
    assert (url, f"{origin.region}/{origin.service}") == sent_by_the_sdk(connection)
    return origin


def write_config(text: str) -> None:
    """The user's configuration file. The keys are for a profile alone: a named profile takes none from elsewhere."""
    Path(os.environ["AWS_CONFIG_FILE"]).write_text(text)


MINE = "[profile mine]\naws_access_key_id = mine\naws_secret_access_key = mine\n"


@pytest.mark.parametrize(("partition", "region"), REGIONS, ids=str)
def test_every_region(partition: str, region: str) -> None:
    origin = as_the_sdk(region=region)
    assert (origin.scheme, origin.port, origin.path_prefix, origin.service) == ("https", 443, "", "s3")
    assert origin.region == region
    assert origin.host == origin.host_header
    assert origin.host.startswith(f"{BUCKET}.s3.")


def offered(region: str) -> bool:
    """Not every partition has FIPS or dualstack."""
    try:
        sent_by_the_sdk(Connection(bucket=BUCKET, region=region))
    except (UsageError, EndpointResolutionError):
        return False
    return True


@pytest.mark.parametrize(("partition", "region"), ONE_EACH, ids=str)
@pytest.mark.parametrize(("fips", "dualstack"), [("true", "false"), ("false", "true"), ("true", "true")])
def test_fips_and_dualstack(
    partition: str, region: str, fips: str, dualstack: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_USE_FIPS_ENDPOINT", fips)
    monkeypatch.setenv("AWS_USE_DUALSTACK_ENDPOINT", dualstack)
    if not offered(region):
        with pytest.raises(UsageError, match="the AWS SDK refuses the settings"):
            resolve_endpoint(Connection(bucket=BUCKET, region=region))
        return
    origin = as_the_sdk(region=region)
    assert ("s3-fips" in origin.host, "dualstack" in origin.host) == (fips == "true", dualstack == "true")


@pytest.mark.parametrize("region", [None, "us-east-1", "aws-global"])
def test_the_first_region_has_a_global_host(region: str | None) -> None:
    origin = as_the_sdk(region=region)
    assert (origin.host, origin.region) == (f"{BUCKET}.s3.amazonaws.com", "us-east-1")


def test_no_region_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_REGION")
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    assert as_the_sdk().region == "us-east-1"


def test_a_region_that_the_sdk_does_not_know_yet() -> None:
    assert as_the_sdk(region="eu-north-9").host == f"{BUCKET}.s3.eu-north-9.amazonaws.com"


@pytest.mark.parametrize("bucket", ["a.bucket.with.dots", "An_Old_Bucket"])
def test_a_name_that_no_certificate_covers(bucket: str) -> None:
    origin = as_the_sdk(bucket=bucket, region="eu-west-1")
    assert (origin.host, origin.path_prefix) == ("s3.eu-west-1.amazonaws.com", f"/{bucket}")


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://127.0.0.1:9000", ("http", "127.0.0.1", 9000, "127.0.0.1:9000", "/a-bucket")),
        ("http://127.0.0.1:9000/", ("http", "127.0.0.1", 9000, "127.0.0.1:9000", "/a-bucket")),
        ("http://127.0.0.1:80", ("http", "127.0.0.1", 80, "127.0.0.1", "/a-bucket")),
        ("http://127.0.0.1:443", ("http", "127.0.0.1", 443, "127.0.0.1:443", "/a-bucket")),
        ("https://gateway.example", ("https", "gateway.example", 443, "gateway.example", "/a-bucket")),
        ("https://gateway.example:443/s3/v1/", ("https", "gateway.example", 443, "gateway.example", "/s3/v1/a-bucket")),
        ("http://[::1]:9000", ("http", "::1", 9000, "[::1]:9000", "/a-bucket")),
        ("https://[::1]", ("https", "::1", 443, "[::1]", "/a-bucket")),
    ],
)
@pytest.mark.parametrize("setting", ["flag", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "profile"])
def test_an_endpoint_of_the_users_own(
    url: str, expected: tuple[object, ...], setting: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fields: dict[str, str] = {"region": "eu-west-1"}
    if setting == "flag":
        fields["endpoint_url"] = url
    elif setting == "profile":
        write_config(f"{MINE}endpoint_url = {url}\n")
        fields["profile"] = "mine"
    else:
        monkeypatch.setenv(setting, url)
    connection = Connection(bucket=BUCKET, **fields)  # type: ignore[arg-type]
    origin = resolve_endpoint(connection)
    assert (f"{origin.url}{origin.path_prefix}/{encode_key(KEY)}", "eu-west-1/s3") == sent_by_the_sdk(connection)
    found = (origin.scheme, origin.host, origin.port, origin.host_header, origin.path_prefix)
    assert (*found, origin.region, origin.service) == (*expected, "eu-west-1", "s3")


def test_an_endpoint_with_a_password_in_it() -> None:
    assert resolve_endpoint(Connection(bucket=BUCKET, endpoint_url="http://u:p@gateway.example:81")).url == (
        "http://gateway.example:81"
    )


def test_endpoints_that_are_to_be_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:9000")
    monkeypatch.setenv("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true")
    assert as_the_sdk(region="eu-west-1").host == f"{BUCKET}.s3.eu-west-1.amazonaws.com"


@pytest.mark.parametrize(("style", "prefix"), [("path", "/a-bucket"), ("virtual", ""), ("auto", "")])
def test_addressing_style_of_a_profile(style: str, prefix: str) -> None:
    write_config(f"{MINE}region = eu-west-3\ns3 =\n    addressing_style = {style}\n")
    origin = as_the_sdk(profile="mine", region="eu-west-3")
    assert origin.path_prefix == prefix
    assert origin.host.endswith("s3.eu-west-3.amazonaws.com")


def test_region_of_a_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_REGION")
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    write_config(f"{MINE}region = eu-west-3\n")
    assert as_the_sdk(profile="mine").region == "eu-west-3"


def test_acceleration_of_a_profile() -> None:
    write_config(f"{MINE}s3 =\n    use_accelerate_endpoint = true\n")
    origin = as_the_sdk(profile="mine", region="eu-west-3")
    assert (origin.host, origin.region) == (f"{BUCKET}.s3-accelerate.amazonaws.com", "eu-west-3")


@pytest.mark.parametrize(
    ("bucket", "host", "region", "service"),
    [
        (
            "arn:aws:s3:us-west-2:123456789012:accesspoint/name",
            "name-123456789012.s3-accesspoint.us-west-2.amazonaws.com",
            "us-west-2",
            "s3",
        ),
        (
            "arn:aws:s3-outposts:us-west-2:123456789012:outpost/op-01/accesspoint/name",
            "name-123456789012.op-01.s3-outposts.us-west-2.amazonaws.com",
            "us-west-2",
            "s3-outposts",
        ),
        ("name-1234-s3alias", "name-1234-s3alias.s3.us-west-2.amazonaws.com", "us-west-2", "s3"),
    ],
)
def test_access_points(bucket: str, host: str, region: str, service: str) -> None:
    origin = as_the_sdk(bucket=bucket, region="us-west-2")
    assert (origin.host, origin.path_prefix, origin.region, origin.service) == (host, "", region, service)


@pytest.mark.parametrize(
    "fields",
    [
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
    ],
    ids=str,
)
def test_what_cannot_be_resolved(fields: dict[str, str]) -> None:
    with pytest.raises(UsageError):
        resolve_endpoint(Connection(**{"bucket": BUCKET, "region": "us-east-1", **fields}))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "authorization", ["AWS4-ECDSA-P256-SHA256 Credential=x/20260102/s3/aws4_request, ", "AWS x:y", ""]
)
def test_other_signatures_than_ours(authorization: str) -> None:
    with pytest.raises(UsageError, match="Signature Version 4"):
        origin_of("https://mfzwi23gnjvgw.mrap.accesspoint.s3-global.amazonaws.com/", authorization)


def test_old_signatures_in_a_profile_are_not_for_s3_any_more() -> None:
    write_config(f"{MINE}s3 =\n    signature_version = s3\n")
    assert as_the_sdk(profile="mine", region="eu-west-3").region == "eu-west-3"


def test_no_such_profile_where_the_environment_settles_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_DATA_PATH", "AWS_CA_BUNDLE"):
        monkeypatch.setenv(name, "anything")
    for resolved in (tls_context, resolve_endpoint):
        with pytest.raises(UsageError, match="'nobody'"):
            resolved(Connection(bucket=BUCKET, profile="nobody"))


def test_files_that_cannot_be_used() -> None:
    with pytest.raises(UsageError, match="'nobody'"):
        resolve_endpoint(Connection(bucket=BUCKET, profile="nobody"))
    with pytest.raises(UsageError, match="'nobody'"):
        tls_context(Connection(bucket=BUCKET, profile="nobody"))
    write_config("[default\n")
    with pytest.raises(UsageError, match="configuration files"):
        resolve_endpoint(Connection(bucket=BUCKET))
    with pytest.raises(UsageError, match="configuration files"):
        tls_context(Connection(bucket=BUCKET))


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


def test_no_proxy_at_all(no_proxies: pytest.MonkeyPatch) -> None:
    assert proxy_for(at(HTTPS)) is proxy_for(at(HTTP)) is None


def test_a_proxy_for_each_scheme(no_proxies: pytest.MonkeyPatch) -> None:
    no_proxies.setenv("HTTPS_PROXY", "http://user:pass@proxy.example:3128")
    no_proxies.setenv("http_proxy", "proxy.example:3129")
    assert proxy_for(at(HTTPS)) == "http://user:pass@proxy.example:3128"
    assert proxy_for(at(HTTP)) == "http://proxy.example:3129"


@pytest.mark.parametrize("bypass", ["127.0.0.1", "other, 127.0.0.1:9000", "*"])
def test_hosts_that_go_past_the_proxy(bypass: str, no_proxies: pytest.MonkeyPatch) -> None:
    no_proxies.setenv("HTTP_PROXY", "http://proxy.example")
    no_proxies.setenv("NO_PROXY", bypass)
    assert proxy_for(at(HTTP)) is None


def test_a_bypass_covers_the_buckets_below_it(no_proxies: pytest.MonkeyPatch) -> None:
    no_proxies.setenv("HTTPS_PROXY", "http://proxy.example")
    no_proxies.setenv("NO_PROXY", ".amazonaws.com")
    assert proxy_for(resolve_endpoint(Connection(bucket=BUCKET))) is None
    assert proxy_for(at(HTTPS)) == "http://proxy.example"


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


def test_old_tls_is_not_spoken(no_bundles: pytest.MonkeyPatch) -> None:
    context = tls_context(Connection(bucket=BUCKET))
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)


@pytest.mark.parametrize("kind", ["missing", "empty", "a folder"])
def test_certificates_that_cannot_be_read(kind: str, tmp_path: Path, no_bundles: pytest.MonkeyPatch) -> None:
    path = tmp_path / "bundle.pem"
    if kind == "empty":
        path.write_text("")
    elif kind == "a folder":
        path.mkdir()
    no_bundles.setenv("AWS_CA_BUNDLE", str(path))
    with pytest.raises(UsageError, match=r"bundle\.pem.*AWS_CA_BUNDLE"):
        tls_context(Connection(bucket=BUCKET))
