"""Messages: what is written is read back, what is malformed is refused with a reason, and limits hold when packing."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor.errors import MessageError
from auditor.hashing.limits import LARGE
from auditor.hashing.queue.message import (
    MAX_BODY,
    MAX_OBJECT_BYTES,
    MAX_OBJECTS,
    MOST_HOPS_READ,
    HashTask,
    decode,
    encode,
    pack,
)

TASK = HashTask("key", None, "etag", 3)
(MESSAGE,) = pack("run", "bucket", ("sha256",), [TASK])

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
    odd = HashTask("a\x00\n\N{PILE OF POO}\ufffe", "v", "e", 0)
    for message in pack("20260102T030405Z-abcdef", "bucket", algorithms, [odd, *objects]):
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
    (message,) = pack("run", "bucket", ("md5",), [HashTask("k", "v", "e", 1, 0, 7, "00AB"), TASK])
    first, second = json.loads(encode(message))["objects"]
    assert (first["hops"], first["sequencer"]) == (7, "00AB")
    assert set(second) == {"key", "version_id", "etag", "size", "attempts"}


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


def test_messages_are_filled_to_their_limits_with_the_escapes_of_the_longest_keys() -> None:
    objects = [HashTask("\x01" * 1024, None, "e", 10) for _ in range(100)]
    messages = list(pack("run", "bucket", ("sha256",), objects))
    sizes = [len(encode(message)) for message in messages]
    assert len(messages) == 4
    assert max(sizes) <= MAX_BODY
    assert min(sizes[:-1]) > MAX_BODY - 7000
    large = [HashTask(f"{number}", None, "e", LARGE - 1) for number in range(9)]
    assert [len(message.tasks) for message in pack("run", "bucket", ("sha256",), large)] == [4, 4, 1]


def test_malformed_field_is_named() -> None:
    broken: dict[str, tuple[dict[str, Any], str]] = {
        "version": (document(v=2), "field v is not 1"),
        "run": (document(run="a\nb"), "run has characters"),
        "bucket": (document(bucket="a/b"), "bucket is not a bucket's name"),
        "no algorithm": (document(algorithms=[]), "algorithms is empty"),
        "algorithm": (document(algorithms=["crc32"]), "known ones are sha256, sha512, sha1, md5"),
        "no object": (document(objects=[]), "objects has 0 entries, not 1 to 100"),
        "objects": (
            document(objects=document()["objects"] * (MAX_OBJECTS + 1)),
            "objects has 101 entries, not 1 to 100",
        ),
        "key": (with_object(key="k" * 1025), "objects[0].key has 1025 bytes"),
        "unicode": (with_object(key="\ud800"), "objects[0].key is not valid unicode"),
        "etag": (with_object(etag="a\r\nx-amz-evil: 1"), "objects[0].etag has characters"),
        "size": (with_object(size=2**60), "objects[0].size is negative or too large"),
        "hops": (with_object(hops=10_001), "objects[0].hops is negative or too large"),
        "sequencer": (with_object(sequencer="f" * 65), "objects[0].sequencer is not hexadecimal"),
    }
    failures = {}
    for name, (document_, reason) in broken.items():
        with pytest.raises(MessageError) as caught:
            decode(json.dumps(document_))
        if reason not in str(caught.value):
            failures[name] = str(caught.value)
    assert not failures, failures
