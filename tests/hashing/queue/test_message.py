"""Messages: what is written is read back, what is malformed is refused with a reason, and limits hold when packing."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor.aws.sqs import Outgoing, batches
from auditor.errors import MessageError
from auditor.hashing.limits import LARGE
from auditor.hashing.queue.message import (
    MAX_BODY,
    MAX_OBJECT_BYTES,
    MAX_OBJECTS,
    MOST_HOPS_READ,
    HashMessage,
    HashTask,
    Packer,
    decode,
    encode,
    pack,
)

TASK = HashTask("key", None, "etag", 3)
MESSAGE = HashMessage("run", "bucket", ("sha256",), (TASK,))

keys = st.text(st.characters(codec="utf-8"), min_size=1, max_size=256)
tasks = st.builds(
    HashTask,
    key=keys,
    version_id=st.none() | st.text("abc123._", min_size=1, max_size=30),
    etag=st.text("0123456789abcdef-", min_size=1, max_size=40),
    size=st.integers(0, 2**50),
    attempts=st.integers(0, 10),
    hops=st.integers(0, MOST_HOPS_READ),
    sequencer=st.text("0123456789abcdefABCDEF", max_size=64),
)


def document(**changes: Any) -> dict[str, Any]:
    """A good message with some fields changed."""
    parsed: dict[str, Any] = json.loads(encode(MESSAGE))
    return parsed | changes


def with_object(**changes: Any) -> dict[str, Any]:
    base = document()
    base["objects"][0] |= changes
    return base


@given(st.lists(tasks, min_size=1, max_size=20), st.sets(st.sampled_from(("sha256", "sha1", "md5")), min_size=1))
def test_what_is_written_is_read_back(objects: list[HashTask], algorithms: set[str]) -> None:
    message = HashMessage("20260102T030405Z-abcdef", "bucket", tuple(algorithms), tuple(objects))
    body = encode(message)
    assert decode(body) == message
    assert body.isascii()
    assert body.isprintable() or "\x7f" in body


def test_body_is_the_contracts_json_without_spaces() -> None:
    assert encode(MESSAGE) == (
        '{"v":1,"run":"run","bucket":"bucket","algorithms":["sha256"],'
        '"objects":[{"key":"key","version_id":null,"etag":"etag","size":3,"attempts":0}]}'
    )


def test_hops_and_sequencer_are_written_only_where_they_say_something() -> None:
    message = HashMessage("run", "bucket", ("md5",), (HashTask("k", "v", "e", 1, 0, 7, "00AB"), TASK))
    first, second = json.loads(encode(message))["objects"]
    assert (first["hops"], first["sequencer"]) == (7, "00AB")
    assert set(second) == {"key", "version_id", "etag", "size", "attempts"}


def test_fields_of_a_newer_version_that_keeps_the_number_are_ignored() -> None:
    newer = with_object(priority=3) | {"sent_by": {"name": "x"}}
    assert decode(json.dumps(newer)) == MESSAGE


def test_key_outside_ascii_and_with_control_characters_is_escaped() -> None:
    message = HashMessage("run", "bucket", ("md5",), (HashTask("a\x00\n\N{PILE OF POO}\ufffe", "v", "e", 0),))
    body = encode(message)
    assert body.isascii()
    assert body.isprintable()
    assert decode(body) == message


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ('{"v":' + "9" * 5000 + "}", "not JSON"),
        ("[]", "the body is not a JSON object"),
        ("null", "the body is not a JSON object"),
        ("{}", "field v"),
        ('{"v":NaN}', "not JSON"),
        ('{"v":1,"v":1}', "names a field twice"),
        ('{"v":1,"objects":[{"key":"a","key":"b"}]}', "names a field twice"),
    ],
)
def test_body_that_is_no_message(body: str, reason: str) -> None:
    with pytest.raises(MessageError, match=reason):
        decode(body)


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        (document(v=2), "field v is not 1"),
        (document(v=True), "field v is not 1"),
        (document(v=1.0), "field v is not 1"),
        (document(v="1"), "field v is not 1"),
        (document(run=""), "run is not a string with text"),
        (document(run=7), "run is not"),
        (document(bucket=None), "bucket is not"),
        (document(bucket="a/b"), "bucket is not a bucket's name"),
        (document(bucket="bucket\n"), "bucket is not a bucket's name"),
        (document(algorithms=[]), "algorithms is empty"),
        (document(algorithms="sha256"), "algorithms is not a list"),
        (document(algorithms=["crc32"]), "known ones are sha256, sha512, sha1, md5"),
        (document(algorithms=[["sha256"]]), r"algorithms\[0\] is not text"),
        (document(objects=[]), "objects has 0 entries, not 1 to 100"),
        (document(objects={}), "objects is not a list"),
        (document(objects=document()["objects"] * (MAX_OBJECTS + 1)), "objects has 101 entries, not 1 to 100"),
        (document(objects=["x"]), r"objects\[0\] is not a JSON object"),
        (with_object(key=""), r"objects\[0\].key is not a string with text"),
        (with_object(key=5), r"objects\[0\].key is not"),
        (with_object(key="k" * 1025), r"objects\[0\].key has 1025 bytes"),
        (with_object(key="\ud800"), r"objects\[0\].key is not valid unicode"),
        (with_object(version_id=""), r"objects\[0\].version_id is not"),
        (with_object(version_id=3), r"objects\[0\].version_id is not"),
        (with_object(etag=None), r"objects\[0\].etag is not"),
        (with_object(etag="a\r\nx-amz-evil: 1"), r"objects\[0\].etag has characters"),
        (document(run="a\nb"), "run has characters"),
        (with_object(size=-1), r"objects\[0\].size is negative"),
        (with_object(size=1.5), r"objects\[0\].size is not a whole number"),
        (with_object(size=True), r"objects\[0\].size is not a whole number"),
        (with_object(size=2**60), r"objects\[0\].size is negative or too large"),
        (with_object(attempts="1"), r"objects\[0\].attempts is not"),
        (with_object(hops="1"), r"objects\[0\].hops is not a whole number"),
        (with_object(hops=None), r"objects\[0\].hops is not a whole number"),
        (with_object(hops=True), r"objects\[0\].hops is not a whole number"),
        (with_object(hops=-1), r"objects\[0\].hops is negative or too large"),
        (with_object(hops=10_001), r"objects\[0\].hops is negative or too large"),
        (with_object(sequencer=""), r"objects\[0\].sequencer is not"),
        (with_object(sequencer=None), r"objects\[0\].sequencer is not"),
        (with_object(sequencer=1), r"objects\[0\].sequencer is not"),
        (with_object(sequencer="0x1"), r"objects\[0\].sequencer is not hexadecimal"),
        (with_object(sequencer="f" * 65), r"objects\[0\].sequencer is not hexadecimal"),
    ],
)
def test_malformed_field_is_named(broken: dict[str, Any], reason: str) -> None:
    with pytest.raises(MessageError, match=reason):
        decode(json.dumps(broken))


def test_reason_never_quotes_the_text() -> None:
    marker = "EVIL" * 50
    for broken in (
        document(v=marker),
        document(algorithms=[marker]),
        document(bucket=f"{marker}/"),
        with_object(key=[marker]),
        document(objects=marker),
    ):
        with pytest.raises(MessageError) as caught:
            decode(json.dumps(broken))
        assert "EVIL" not in str(caught.value)
        assert len(str(caught.value)) < 200


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(st.sampled_from(["v", "run", "bucket", "objects", "key"]) | st.text(), inner)
        ),
    )
)
def test_any_json_is_a_message_or_a_message_error(value: object) -> None:
    with pytest.raises(MessageError):
        decode(json.dumps(value))


@given(
    st.lists(
        st.builds(HashTask, key=keys, version_id=st.none(), etag=st.just("e"), size=st.integers(0, 2 * LARGE)),
        max_size=300,
    )
)
def test_packed_messages_keep_every_limit_and_every_object(objects: list[HashTask]) -> None:
    messages = list(pack("run", "bucket", ("sha256",), objects))
    assert sorted(task.key for message in messages for task in message.tasks) == sorted(task.key for task in objects)
    for message in messages:
        assert 1 <= len(message.tasks) <= MAX_OBJECTS
        assert len(encode(message)) <= MAX_BODY
        if len(message.tasks) > 1:
            assert sum(task.size for task in message.tasks) <= MAX_OBJECT_BYTES
            assert all(task.size < LARGE for task in message.tasks)


def test_250_small_objects_fill_messages_of_a_hundred() -> None:
    objects = [HashTask(f"key-{number}", None, "e", 10) for number in range(250)]
    assert [len(message.tasks) for message in pack("run", "bucket", ("sha256",), objects)] == [100, 100, 50]


def test_small_objects_need_a_hundredth_of_the_requests_of_one_message_each() -> None:
    objects = [
        HashTask(f"archive/2026/01/02/scan-{number:09}.tiff", None, "0" * 32, 10_240) for number in range(20_000)
    ]
    bodies = [encode(message) for message in pack("20260102T030405Z-abcdef", "a" * 63, ("sha256", "md5"), objects)]
    sends = list(batches([Outgoing(body) for body in bodies]))
    assert len(bodies) == len(objects) / 100  # an invocation each
    assert len(sends) == len(objects) / 10 / 100
    assert max(map(len, bodies)) < 64 * 1024  # SQS bills as many requests as it has of these


def test_body_limit_counts_the_escapes_of_the_longest_keys() -> None:
    objects = [HashTask("\x01" * 1024, None, "e", 10) for _ in range(100)]
    messages = list(pack("run", "bucket", ("sha256",), objects))
    sizes = [len(encode(message)) for message in messages]
    assert len(messages) == 4
    assert max(sizes) <= MAX_BODY
    assert min(sizes[:-1]) > MAX_BODY - 7000


def test_object_bytes_limit_ends_a_message() -> None:
    objects = [HashTask(f"key-{number}", None, "e", LARGE - 1) for number in range(9)]
    assert [len(message.tasks) for message in pack("run", "bucket", ("sha256",), objects)] == [4, 4, 1]


def test_large_object_leaves_at_once_and_alone() -> None:
    packer = Packer("run", "bucket", ("sha256",))
    small, large = HashTask("small", None, "e", 1), HashTask("large", None, "e", LARGE)
    assert packer.add(small) == []
    assert [message.tasks for message in packer.add(large)] == [(large,)]
    assert [message.tasks for message in packer.flush()] == [(small,)]
    assert packer.flush() == []
