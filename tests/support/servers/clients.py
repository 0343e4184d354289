"""Clients for tests of a server: boto3 with fake keys, and bare HTTP."""

from __future__ import annotations

import http.client
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import urlsplit

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

BUCKET: Final = "audited"


def client(service: str, url: str, region: str = "us-east-1", read_timeout: float = 20) -> Any:
    """A boto3 client that makes one attempt."""
    config = Config(retries={"total_max_attempts": 1}, read_timeout=read_timeout)
    keys = {"aws_access_key_id": "testing", "aws_secret_access_key": "testing"}
    made = boto3.client(service, endpoint_url=url, region_name=region, config=config, **keys)
    if service == "s3control":
        made.meta.events.register("before-send.s3-control", _to_the_host_itself)
    return made


def _to_the_host_itself(request: Any, **_: Any) -> None:
    """S3 Control puts the account before the host, which means nothing before an IP address."""
    parts = urlsplit(request.url)
    request.url = parts._replace(netloc=parts.netloc.partition(".")[2]).geturl()


def refusal(call: Callable[..., Any], **arguments: Any) -> tuple[int, str, dict[str, str]]:
    """Status, code and headers of a failing call of the bucket."""
    with pytest.raises(ClientError) as caught:
        call(Bucket=BUCKET, **arguments)
    meta = caught.value.response["ResponseMetadata"]
    return meta["HTTPStatusCode"], caught.value.response["Error"]["Code"], meta["HTTPHeaders"]


def listed(s3: Any, operation: str, member: str, **arguments: Any) -> list[dict[str, Any]]:
    """All entries of a paged listing of the bucket."""
    pages = s3.get_paginator(operation).paginate(Bucket=BUCKET, **arguments)
    return [entry for page in pages for entry in page.get(member, ())]


def raw(url: str, target: str, headers: dict[str, str] | None = None) -> tuple[int, bytes]:
    """GET a target that goes over the wire as it is."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=10)
    try:
        connection.request("GET", target, headers=headers or {})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()
