"""A HEAD's headers, one by one: those that are facts, and those that are none."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from auditor.errors import CallFailed
from auditor.model.object import Acl, Grant, Head
from auditor.s3.engines import parse_headers as headers

LEAST = {b"etag": b'"e"', b"content-length": b"3"}
NUMBERS = (b"content-length", b"x-amz-tagging-count", b"x-amz-missing-meta", b"x-amz-mp-parts-count")


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("value", ["\u0661", "\uff17", "\xa05", "\u20033", "", "1.0", "x"])
def test_number_of_other_than_ascii_digits_is_none(name: bytes, value: str) -> None:
    with pytest.raises(CallFailed) as failed:
        headers.head({**LEAST, name: value.encode()})
    assert (failed.value.code, failed.value.message.partition(":")[0]) == ("Malformed", name.decode())
    if name == b"content-length":
        with pytest.raises(CallFailed):
            headers.length_and_etag("GetObject", {**LEAST, name: value.encode()})


def test_what_is_not_said_is_none() -> None:
    """The fields are filled by position, so each must be None by default."""
    assert headers.head(LEAST) == Head(etag="e", content_length=3)
    assert {field.default for field in fields(Head)[2:] if field.name != "metadata"} == {None}


def test_latin_1_anywhere_is_read() -> None:
    found = headers.head({**LEAST, b"x-amz-meta-na\xefve": b"caf\xe9", b"cache-control": b"caf\xc3\xa9"})
    assert (found.metadata, found.cache_control) == ({"na\u00efve": "caf\u00e9"}, "caf\u00e9")


def test_equal_acls_are_one_in_a_table() -> None:
    one, other = (Acl("o", (Grant("g", "READ"),)) for _ in range(2))
    assert {one: 1}[other] == 1
    assert {one: 1}.get(replace(one, owner="p")) is None
    assert hash(replace(one, owner="p")) == hash(Acl("p", one.grants))
