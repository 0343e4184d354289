"""Targets: the parts of a URI, unchanged, and the keys that a range covers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor.errors import UsageError
from auditor.model.json_text import plain
from auditor.model.target import Target, check_bucket_name, parse_target
from tests.support.odd_keys import ODD_KEYS


@pytest.mark.parametrize(
    ("uri", "bucket", "prefix"),
    [
        ("s3://my-bucket", "my-bucket", ""),
        ("s3://my-bucket/", "my-bucket", ""),
        ("s3://my-bucket/a/b/", "my-bucket", "a/b/"),
        ("s3://my-bucket//a", "my-bucket", "/a"),
        ("S3://my-bucket/A", "my-bucket", "A"),
        ("s3://Old_Bucket.name/x", "Old_Bucket.name", "x"),
        ("s3://my-bucket/%41?x=1#y", "my-bucket", "%41?x=1#y"),
    ],
)
def test_uri_is_read_to_the_letter(uri: str, bucket: str, prefix: str) -> None:
    target = parse_target(uri)
    assert (target.bucket, target.prefix) == (bucket, prefix)


@pytest.mark.parametrize("kind", ODD_KEYS)
def test_odd_key_as_prefix_comes_back_in_the_uri(kind: str) -> None:
    target = parse_target(f"s3://my-bucket/{ODD_KEYS[kind]}")
    assert target.prefix == ODD_KEYS[kind]
    assert parse_target(target.uri) == target


@pytest.mark.parametrize(
    ("uri", "words"),
    [
        ("my-bucket", "not an S3 URI"),
        ("https://my-bucket.s3.amazonaws.com/", "not an S3 URI"),
        ("s3:/my-bucket", "not an S3 URI"),
        ("", "not an S3 URI"),
        ("s3://", "not a bucket name"),
        ("s3://ab", "not a bucket name"),
        ("s3://a..b", "not a bucket name"),
        ("s3://-bucket", "not a bucket name"),
        ("s3://my bucket/x", "not a bucket name"),
        ("s3://bucket\n/x", "not a bucket name"),
        ("s3://arn:aws:s3:::x", "not a bucket name"),
        ("s3://logs--use1-az4--x-s3", "directory bucket"),
    ],
)
def test_uri_that_means_nothing_is_refused_and_named(uri: str, words: str) -> None:
    with pytest.raises(UsageError, match=words) as caught:
        parse_target(uri)
    assert repr(uri.removeprefix("s3://").partition("/")[0])[1:-1] in str(caught.value)


@pytest.mark.parametrize(("start_after", "stop_at"), [("b", "a"), ("a", "a")])
def test_empty_range_is_refused(start_after: str, stop_at: str) -> None:
    with pytest.raises(UsageError, match="range is empty"):
        parse_target("s3://my-bucket", start_after=start_after, stop_at=stop_at)


def test_longest_name() -> None:
    assert check_bucket_name("b" * 255) == "b" * 255
    with pytest.raises(UsageError):
        check_bucket_name("b" * 256)


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


def test_dictionary_is_the_summarys() -> None:
    target = Target("my-bucket", "p/", True, "p/a", "p/z")
    assert plain(target) == {
        "bucket": "my-bucket",
        "prefix": "p/",
        "versions": True,
        "start_after": "p/a",
        "stop_at": "p/z",
    }
