"""Targets: the parts of a URI, unchanged, and the keys that a range covers."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor.errors import UsageError
from auditor.model.target import Target, check_bucket_name, parse_target
from tests.support.odd_keys import ODD_KEYS

TABLES = tomllib.loads((Path(__file__).parent / "tables" / "targets.toml").read_text(encoding="utf-8"))


def test_uri_is_read_to_the_letter() -> None:
    for uri, bucket, prefix in TABLES["read"]:
        target = parse_target(uri)
        assert (target.bucket, target.prefix) == (bucket, prefix), uri
    for kind, key in ODD_KEYS.items():
        target = parse_target(f"s3://my-bucket/{key}")
        assert (target.prefix, parse_target(target.uri)) == (key, target), kind


def test_uri_that_means_nothing_is_refused_and_named() -> None:
    for uri, words in TABLES["refused"]:
        with pytest.raises(UsageError, match=words) as caught:
            parse_target(uri)
        assert repr(uri.removeprefix("s3://").partition("/")[0])[1:-1] in str(caught.value)


def test_url_that_names_no_bucket_at_aws_is_refused() -> None:
    for url, words in TABLES["urls"]:
        with pytest.raises(UsageError) as caught:
            parse_target(url)
        assert words in str(caught.value)
        assert "secret" not in str(caught.value)


@pytest.mark.parametrize("prefix", ["a" * 1025, "\u00e9" * 513, "a" * 5_000_000])
def test_prefix_that_begins_no_key_is_refused_in_a_short_sentence(prefix: str) -> None:
    for uri, start in ((f"s3://my-bucket/{prefix}", None), ("s3://my-bucket", prefix)):
        with pytest.raises(UsageError, match="bytes, and no key has more than 1,024: shorten it") as caught:
            parse_target(uri, start_after=start)
        assert len(str(caught.value)) < 300


def test_longest_prefix_and_name() -> None:
    assert parse_target(f"s3://my-bucket/{'a' * 1024}").prefix == "a" * 1024
    assert check_bucket_name("b" * 255) == "b" * 255
    with pytest.raises(UsageError):
        check_bucket_name("b" * 256)


def test_empty_range_is_refused() -> None:
    for start_after, stop_at in (("b", "a"), ("a", "a")):
        with pytest.raises(UsageError, match="range is empty"):
            parse_target("s3://my-bucket", start_after=start_after, stop_at=stop_at)


@given(key=st.text(max_size=5), start=st.none() | st.text(max_size=5), stop=st.none() | st.text(max_size=5))
def test_range_covers_what_lies_behind_its_start_up_to_its_end(key: str, start: str | None, stop: str | None) -> None:
    target = Target("my-bucket", start_after=start, stop_at=stop)
    assert target.covers(key) == ((start is None or key > start) and (stop is None or key <= stop))
    assert target.beyond(key) == (stop is not None and key > stop)
    assert target.whole == (start is None and stop is None)


@given(
    one=st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    other=st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
)
def test_keys_compare_as_their_bytes_do(one: str, other: str) -> None:
    assert Target("my-bucket", stop_at=one).beyond(other) == (other.encode() > one.encode())
