"""The odd keys that moto stores correctly; other tests rely on the list, and a newer moto may change it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote_plus

import pytest
from botocore.exceptions import ClientError

from tests.support.odd_keys import MOTO_LISTS_NO_VERSIONS, MOTO_SERVES, ODD_KEYS
from tests.support.servers.clients import client


@pytest.fixture
def s3(moto_url: str) -> Iterator[Any]:
    made = client("s3", moto_url)
    yield made
    made.close()


def served(s3: Any, key: str) -> bool:
    """Put, list, HEAD, ACL and GET work with this key."""
    try:
        s3.put_object(Bucket="alone", Key=key, Body=b"x")
        page = s3.list_objects_v2(Bucket="alone", EncodingType="url")
        s3.get_object_acl(Bucket="alone", Key=key)
        length = s3.head_object(Bucket="alone", Key=key)["ContentLength"]
        body = s3.get_object(Bucket="alone", Key=key)["Body"].read()
    except ClientError:
        return False
    return [unquote_plus(entry["Key"]) for entry in page["Contents"]] == [key] and (length, body) == (1, b"x")


def versions_listed(s3: Any, key: str) -> bool:
    try:
        page = s3.list_object_versions(Bucket="alone")
    except ClientError:
        return False
    return [entry["Key"] for entry in page.get("Versions", ())] == [key]


def test_moto_serves_the_odd_keys_it_is_said_to(s3: Any) -> None:
    wrong = {}
    for name, key in ODD_KEYS.items():
        s3.create_bucket(Bucket="alone")
        try:
            found = served(s3, key), versions_listed(s3, key)
            if found != (name in MOTO_SERVES, name not in MOTO_LISTS_NO_VERSIONS):
                wrong[name] = found
        finally:
            for entry in s3.list_objects_v2(Bucket="alone").get("Contents", ()):
                s3.delete_object(Bucket="alone", Key=entry["Key"])
            s3.delete_bucket(Bucket="alone")
    assert wrong == {}
