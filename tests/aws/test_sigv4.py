"""Signatures equal botocore's own signer's, byte for byte."""

from __future__ import annotations

import calendar
import time
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as SdkCredentials
from hypothesis import given, settings
from hypothesis import strategies as st

from auditor.aws.sigv4 import (
    EMPTY_BODY,
    UNSIGNED,
    Credentials,
    Pairs,
    Signer,
    UnsignableError,
    encode_key,
    encode_query,
)
from tests.support.odd_keys import ODD_KEYS

HOST = "a-bucket.s3.eu-central-1.amazonaws.com"
PLAIN = Credentials("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
NOON = float(calendar.timegm((2026, 1, 2, 12, 0, 0)))

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
KEYS = st.one_of(TEXT, st.text("ab/.%+ ~\u00e9", max_size=12), st.sampled_from(sorted(ODD_KEYS.values())))
QUERIES = st.lists(st.tuples(st.one_of(TEXT, st.sampled_from(["acl", "prefix", "versionId"])), TEXT), max_size=5)
VALUES = st.one_of(
    st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=30), st.text(" \tab", max_size=12)
)
NAMED = ["if-match", "range", "x-amz-checksum-mode", "x-amz-expected-bucket-owner", "x-amz-request-payer", "zz-last"]
NAMES = st.sampled_from([*NAMED, *sorted(UNSIGNED)]) | st.from_regex(r"\Aq-[a-z0-9-]{0,8}\Z")
HEADERS = st.dictionaries(NAMES, VALUES, max_size=6).map(lambda found: tuple(sorted(found.items())))
TOKENS = st.none() | st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=400)
PRINTABLE = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=40)
CREDENTIALS = st.builds(Credentials, PRINTABLE, st.one_of(PRINTABLE, TEXT), TOKENS)
HOSTS = st.sampled_from([HOST, "127.0.0.1:9000", "s3.dualstack.us-gov-west-1.amazonaws.com", "[::1]:8443", "localhost"])
REGIONS = st.sampled_from(["us-east-1", "cn-north-1", "us-gov-west-1", "eusc-de-east-1", "", "a region"])
SERVICES = st.sampled_from(["s3", "s3express", "s3-outposts", "s3-object-lambda"])
MOMENTS = st.floats(0, 4102444800)


def sdk_request(method: str, host: str, path: str, query: str, headers: Pairs) -> AWSRequest:
    return AWSRequest(method=method, url=f"https://{host}{path}?{query}", headers=dict([("host", host), *headers]))


def sdk_authorization(auth: Any, request: AWSRequest, credentials: Credentials, now: float) -> str:
    """The result of botocore's add_auth() at another time than now, by its public steps."""
    request.context["timestamp"] = datetime.fromtimestamp(int(now), UTC).strftime("%Y%m%dT%H%M%SZ")
    request.headers["X-Amz-Date"] = request.context["timestamp"]
    request.headers["X-Amz-Content-SHA256"] = auth.payload(request)
    if credentials.token:
        request.headers["X-Amz-Security-Token"] = credentials.token
    text = auth.string_to_sign(request, auth.canonical_request(request))
    names = auth.signed_headers(auth.headers_to_sign(request))
    signature = auth.signature(text, request)
    return f"AWS4-HMAC-SHA256 Credential={auth.scope(request)}, SignedHeaders={names}, Signature={signature}"


@settings(max_examples=300)
@given(
    CREDENTIALS,
    st.sampled_from(["GET", "HEAD"]),
    HOSTS,
    st.sampled_from(["/", "/a-bucket/", "/prefix/a-bucket/"]),
    KEYS,
    QUERIES,
    HEADERS,
    REGIONS,
    SERVICES,
    MOMENTS,
)
@pytest.mark.slow
def test_every_signature_is_the_sdks(
    credentials: Credentials,
    method: str,
    host: str,
    prefix: str,
    key: str,
    pairs: list[tuple[str, str]],
    headers: Pairs,
    region: str,
    service: str,
    now: float,
) -> None:
    path, query = prefix + encode_key(key), encode_query(pairs)
    signer = Signer(region, service)
    auth = S3SigV4Auth(SdkCredentials(*credentials), service, region)
    expected = sdk_authorization(auth, sdk_request(method, host, path, query, headers), credentials, now)
    for _ in range(2):  # the second time from what was prepared
        sent = signer.sign(credentials, method, host, path, query, headers, now)
        assert dict(sent)["authorization"] == expected


@pytest.mark.parametrize("token", [None, "a/session+token=="])
def test_all_that_is_sent_for_odd_keys_is_what_the_sdk_sends_now(token: str | None) -> None:
    credentials, failures = PLAIN._replace(token=token), list[object]()
    headers = (("if-match", '"an etag"'), ("user-agent", "anything"), ("x-amz-request-payer", "requester"))
    for name, key in ODD_KEYS.items():
        path, query = f"/{encode_key(key)}", encode_query([("versionId", "a+b/c="), ("acl", "")])
        request = sdk_request("GET", HOST, path, query, headers)
        S3SigV4Auth(SdkCredentials(*credentials), "s3", "eu-central-1").add_auth(request)
        expected = {name.lower(): value for name, value in request.headers.items()}
        now = calendar.timegm(time.strptime(expected["x-amz-date"], "%Y%m%dT%H%M%SZ"))
        sent = Signer("eu-central-1").sign(credentials, "GET", HOST, path, query, headers, now + 0.5)
        if (dict(sent), len(sent)) != (expected, len(expected)):
            failures.append((name, sent, expected))
    assert not failures, failures


def authorization(signer: Signer, now: float, credentials: Credentials = PLAIN, headers: Pairs = ()) -> str:
    return dict(signer.sign(credentials, "HEAD", HOST, "/key", "", headers, now))["authorization"]


def test_one_signer_over_midnight_and_back() -> None:
    midnight = float(calendar.timegm((2026, 1, 3, 0, 0, 0)))
    signer = Signer("eu-central-1")
    for now in (midnight - 1, midnight - 0.001, midnight, midnight + 1, midnight - 1, midnight + 86400):
        auth = S3SigV4Auth(SdkCredentials(*PLAIN), "s3", "eu-central-1")
        expected = sdk_authorization(auth, sdk_request("HEAD", HOST, "/key", "", ()), PLAIN, now)
        assert authorization(signer, now) == expected
    assert "/20260102/" in authorization(signer, midnight - 0.001)
    assert "/20260103/" in authorization(signer, midnight)


def test_a_clock_that_was_never_set() -> None:
    for now in (0.0, 0.5, 1.0, 2.0):
        sent = dict(Signer("x").sign(PLAIN, "HEAD", HOST, "/key", "", (), now))
        assert sent["x-amz-date"] == f"19700101T00000{int(now)}Z"
        assert "/19700101/x/s3/aws4_request" in sent["authorization"]


def test_credentials_that_are_renewed_in_mid_second() -> None:
    signer = Signer("eu-central-1")
    old = Credentials("AKIDOLD", "old", "first")
    for credentials in (old, old._replace(token="second"), old._replace(secret_key="new"), PLAIN, old):
        assert authorization(signer, NOON, credentials) == authorization(Signer("eu-central-1"), NOON, credentials)


def test_keys_are_encoded_once_and_never_normalised() -> None:
    assert encode_key("a//b/../c/./~-_.") == "a//b/../c/./~-_."
    assert encode_key("/%41+ caf\u00e9\n") == "/%2541%2B%20caf%C3%A9%0A"
    assert encode_key("") == ""


def test_a_lone_surrogate_has_no_encoding() -> None:
    for text in ("\ud800", "a\udc80b"):
        with pytest.raises(UnsignableError, match="lone surrogate"):
            encode_key(text)
        with pytest.raises(UnsignableError, match="lone surrogate"):
            encode_query([("prefix", text)])
        with pytest.raises(UnsignableError, match=r"^the secret key is no UTF-8$") as caught:
            authorization(Signer("x"), NOON, PLAIN._replace(secret_key=f"hush{text}"))
        assert caught.value.__cause__ is None


@pytest.mark.parametrize("value", ["a\nb", "a\r\nx-amz-acl: public-read", "\n", "a\n", "\x00", "\x7f", "caf\u00e9"])
def test_a_value_that_no_header_can_hold(value: str) -> None:
    signer = Signer("x")
    with pytest.raises(UnsignableError, match=r"^the header if-match would hold a line break"):
        authorization(signer, NOON, headers=(("if-match", value),))
    with pytest.raises(UnsignableError, match=r"^the header x-amz-security-token would hold a line break"):
        authorization(signer, NOON, PLAIN._replace(token=value))
    with pytest.raises(UnsignableError, match=r"^the header authorization would hold a line break"):
        authorization(signer, NOON, PLAIN._replace(access_key=value))
    with pytest.raises(UnsignableError, match=r"^the header host would hold a line break"):
        signer.sign(PLAIN, "GET", value, "/", "", (), NOON)


WRONG: list[Pairs] = [
    (("b", ""), ("a", "")), (("a", "1"), ("a", "2")), (("Range", "bytes=0-"),), (("a b", ""),), (("", ""),),
    (("a:b\n", ""),), (("host", "elsewhere"),), (("x-amz-date", "now"),), (("x-amz-security-token", "t"),),
]  # fmt: skip


def test_headers_that_are_not_in_order_or_not_the_callers() -> None:
    for headers in WRONG:
        with pytest.raises(UnsignableError, match="in order"):
            authorization(Signer("x"), NOON, headers=headers)


def test_what_is_sent_and_not_signed() -> None:
    headers = (("range", "bytes=0-1"), ("user-agent", "auditor/1"))
    sent = Signer("x").sign(PLAIN, "GET", HOST, "/", "", headers, NOON)
    assert sent[:4] == (("host", HOST), *headers, ("x-amz-content-sha256", EMPTY_BODY))
    assert "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date," in sent[-1][1]


def test_secrets_do_not_show() -> None:
    shown = repr(Credentials("AKIDEXAMPLE", "the secret", "the token"))
    assert shown == "Credentials('AKIDEXAMPLE')"
    assert shown == str(Credentials("AKIDEXAMPLE", "another"))


def test_more_kinds_of_requests_than_are_kept_prepared() -> None:
    signer = Signer("eu-central-1")
    kinds = [(("range", f"bytes={first}-"),) for first in range(200)]
    first = [authorization(signer, NOON, headers=kind) for kind in kinds]
    assert len(set(first)) == len(kinds)
    assert [authorization(signer, NOON, headers=kind) for kind in kinds] == first


def test_query_in_the_order_of_what_is_sent() -> None:
    assert encode_query([("b", "2"), ("a-", "1"), ("a", "\u00e9 "), ("acl", ""), ("a", "+/")]) == (
        "a=%2B%2F&a=%C3%A9%20&a-=1&acl=&b=2"
    )
    assert encode_query([]) == ""
