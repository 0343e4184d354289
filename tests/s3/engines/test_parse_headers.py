"""A HEAD's headers, one by one: those that are facts, and those that are none."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from msgspec.structs import fields, replace

from auditor.errors import CallFailed
from auditor.model.object import Head
from auditor.s3.engines import answers as headers

LEAST = {b"etag": b'"e"', b"content-length": b"3"}
NUMBERS = (b"content-length", b"x-amz-tagging-count", b"x-amz-missing-meta", b"x-amz-mp-parts-count")
RETAINED = ("object_lock_retain_until_date", "2026-01-02T03:04:05Z")


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("value", ["\u0661", "\uff17", "\xa05", "\u20033", "", "1.0", "x"])
def test_number_of_other_than_ascii_digits_is_none(name: bytes, value: str) -> None:
    with pytest.raises(CallFailed) as failed:
        headers.head({**LEAST, name: value.encode()})
    assert (failed.value.action, failed.value.code) == ("HeadObject", "Malformed")
    assert failed.value.message.partition(":")[0] == name.decode()
    if name == b"content-length":
        with pytest.raises(CallFailed):
            headers.length_and_etag("GetObject", {**LEAST, name: value.encode()})


def test_what_is_not_said_is_none() -> None:
    """The fields are filled by position, so each must be None by default."""
    assert headers.head(LEAST) == Head(etag="e", content_length=3)
    assert {field.default for field in fields(Head)[2:] if field.name != "metadata"} == {None}


@pytest.mark.parametrize(
    ("name", "value", "field", "fact"),
    [
        (b"last-modified", b"Fri, 02 Jan 2026 03:04:05 GMT", "last_modified", "2026-01-02T03:04:05Z"),
        (b"x-amz-object-lock-retain-until-date", b"2026-01-02T03:04:05.9Z", *RETAINED),
        (b"x-amz-server-side-encryption-bucket-key-enabled", b"true", "bucket_key_enabled", True),
        (b"x-amz-server-side-encryption-bucket-key-enabled", b"false", "bucket_key_enabled", False),
        (b"x-amz-mp-parts-count", b"3", "parts_count", 3),
        (b"x-amz-storage-class", b"GLACIER", "storage_class", "GLACIER"),
        (b"etag", b'"XeX"', "etag", "XeX"),
        (b"x-amz-unknown", b"x", "metadata", {}),
        (b"x-amz-meta-a", b"b", "metadata", {"a": "b"}),
    ],
)
def test_header_that_is_a_fact(name: bytes, value: bytes, field: str, fact: Any) -> None:
    assert headers.head({**LEAST, name: value}) == replace(headers.head(LEAST), **{field: fact})


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        ({b"content-length": b"3"}, "ETag is missing"),
        ({b"etag": b'"e"'}, "ContentLength is missing"),
        ({**LEAST, b"content-length": b"three"}, "three"),
    ],
)
def test_headers_without_which_there_are_no_facts(sent: dict[bytes, bytes], message: str) -> None:
    calls: list[Callable[[dict[bytes, bytes]], object]] = [headers.head, partial(headers.length_and_etag, "GetObject")]
    for call in calls:
        with pytest.raises(CallFailed) as failed:
            call(sent)
        assert (failed.value.code, failed.value.status) == ("Malformed", 200)
        assert message in failed.value.message
    assert headers.length_and_etag("GetObject", LEAST) == (3, "e")
    assert headers.length_and_etag("GetObject", {**LEAST, b"etag": b""}) == (3, "")


def test_date_that_is_none_is_named() -> None:
    with pytest.raises(CallFailed) as failed:
        headers.head({**LEAST, b"last-modified": b"yesterday"})
    assert failed.value.message.startswith("last-modified: ")


def test_latin_1_anywhere_is_read() -> None:
    found = headers.head({**LEAST, b"x-amz-meta-na\xefve": b"caf\xe9", b"cache-control": b"caf\xc3\xa9"})
    assert (found.metadata, found.cache_control) == ({"na\u00efve": "caf\u00e9"}, "caf\u00e9")
    assert headers.texts({b"a": b"caf\xe9", b"b": b"caf\xc3\xa9"}) == {"a": "caf\u00e9", "b": "caf\u00e9"}
