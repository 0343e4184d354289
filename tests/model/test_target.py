"""Targets: the parts of a URI, unchanged, and the keys that a range covers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor.errors import UsageError
from auditor.model.json_codec import plain
from auditor.model.target import Target, check_bucket_name, parse_target
from tests.support.odd_keys import ODD_KEYS

GOOD = [
    ("s3://my-bucket", "my-bucket", ""),
    ("s3://my-bucket/", "my-bucket", ""),
    ("s3://my-bucket/a/b/", "my-bucket", "a/b/"),
    ("s3://my-bucket//a", "my-bucket", "/a"),
    ("S3://my-bucket/A", "my-bucket", "A"),
    ("s3://Old_Bucket.name/x", "Old_Bucket.name", "x"),
    ("s3://my-bucket/%41?x=1#y", "my-bucket", "%41?x=1#y"),
    ("arn:aws:s3:::my-bucket", "my-bucket", ""),
    ("arn:aws:s3:::my-bucket/logs/a b", "my-bucket", "logs/a b"),
    ("arn:aws:s3:::my-bucket/logs/*", "my-bucket", "logs/"),
    ("arn:aws-cn:s3:::my-bucket/*", "my-bucket", ""),
    ("https://my-bucket.s3.amazonaws.com/", "my-bucket", ""),
    ("https://my.bucket.s3.eu-west-1.amazonaws.com/a%20b/%25", "my.bucket", "a b/%"),
    ("https://My-Bucket.S3.dualstack.eu-west-1.amazonaws.com/A", "my-bucket", "A"),
    ("https://s3.us-gov-west-1.amazonaws.com/my-bucket/a/b", "my-bucket", "a/b"),
    ("https://s3-eu-west-1.amazonaws.com/my-bucket", "my-bucket", ""),
    ("https://s3.cn-north-1.amazonaws.com.cn/my-bucket/", "my-bucket", ""),
    (
        "https://eu-west-1.console.aws.amazon.com/s3/buckets/my-bucket?region=eu-west-1&prefix=a%2Fb/",
        "my-bucket",
        "a/b/",
    ),
]
BAD = [
    ("my-bucket", "'my-bucket' is not an S3 URI: write s3://my-bucket$"),
    ("my-bucket/a/", "'my-bucket/a/' is not an S3 URI: write s3://my-bucket/a/$"),
    ("arn:aws:s3:eu-west-1:111122223333:accesspoint/a", "not an S3 URI: write s3://BUCKET"),
    ("arn:aws:iam::111122223333:role/a", "not an S3 URI: write s3://BUCKET"),
    ("s3://ok", r"'ok' is not a bucket name \(it has 2 characters, and a bucket name has 3 to 63\)"),
    ("s3://a b", "' ' is in no name"),
    ("s3://my_bucket.", "a name begins and ends with a letter or a digit"),
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
]
URLS = [
    (
        "https://s3.example:9000/my-bucket/a",
        "write s3://BUCKET/PREFIX, and --endpoint-url https://s3.example:9000 if",
    ),
    ("https://user:secret@s3.example/my-bucket", "and --endpoint-url https://s3.example if"),
    (
        "https://my-bucket.s3.amazonaws.com/a?X-Amz-Signature=secret",
        "a URL that begins with 'https://my-bucket.s3.amazonaws.com' is not",
    ),
    ("https://s3.amazonaws.com.evil.example/my-bucket", "is not an S3 URI"),
    ("https://[", "is not a URL"),
]


def test_uri_is_read_to_the_letter() -> None:
    for uri, bucket, prefix in GOOD:
        target = parse_target(uri)
        assert (target.bucket, target.prefix) == (bucket, prefix), uri
    for kind, key in ODD_KEYS.items():
        target = parse_target(f"s3://my-bucket/{key}")
        assert (target.prefix, parse_target(target.uri)) == (key, target), kind


def test_uri_that_means_nothing_is_refused_and_named() -> None:
    for uri, words in BAD:
        with pytest.raises(UsageError, match=words) as caught:
            parse_target(uri)
        assert repr(uri.removeprefix("s3://").partition("/")[0])[1:-1] in str(caught.value)


def test_url_that_names_no_bucket_at_aws_is_refused() -> None:
    for url, words in URLS:
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


def test_dictionary_is_the_summarys() -> None:
    target = Target("my-bucket", "p/", True, "p/a", "p/z")
    assert plain(target) == {
        "bucket": "my-bucket",
        "prefix": "p/",
        "versions": True,
        "start_after": "p/a",
        "stop_at": "p/z",
    }
