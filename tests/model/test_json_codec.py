"""Texts are read strictly, Structs come back from JSON, and an error names the path but never the content."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from typing import Annotated, Any

import pytest
from msgspec import Meta, Struct, field

from auditor.model.finding import Severity
from auditor.model.json_codec import JsonError, Size, decode, member, parse_object, plain, typed


class Inner(Struct, frozen=True):
    key: Annotated[str, Meta(min_length=1, max_length=1024)]
    size: Size
    version: Annotated[str, Meta(pattern="^[ -~]+$")] | None = None


class Outer(Struct, frozen=True):
    inner: tuple[Inner, ...]
    counts: Mapping[str, int]
    severity: Severity = Severity.LOW
    anything: Any = None
    other: int = field(default=0, name="another")


GOOD: dict[str, Any] = {"inner": [{"key": "é" * 512, "size": 2**53}], "counts": {"a": 1}, "another": 2}


def test_structs_come_back() -> None:
    outer = Outer((Inner("é" * 512, 2**53, None),), {"a": 1}, Severity.LOW, None, 2)
    assert typed(Outer, GOOD) == outer
    assert typed(Outer, plain(outer)) == outer
    assert typed(Outer, {**GOOD, "severity": "high", "unknown": 1}).severity is Severity.HIGH


BAD: list[tuple[dict[str, Any], str]] = [
    ({"inner": {}}, "inner is not a list"),
    ({"inner": [{}]}, "inner[0].key is missing"),
    ({"inner": [*GOOD["inner"], {"key": "é" * 1025, "size": 0}]}, "inner[1].key is too long"),
    ({"inner": [{"key": "k", "size": 2**53 + 1}]}, "inner[0].size is negative or too large"),
    (
        {"inner": [{"key": "k", "size": 1, "version": "\n"}]},
        "inner[0].version has another form",
    ),
    ({"counts": {"EVIL": "EVIL"}}, "counts.* is not a whole number"),
    ({"severity": "EVIL"}, "severity is not a known word"),
    ({"another": True}, "another is not a whole number"),
]
REFUSED: list[tuple[str | bytes, str]] = [
    (b"\xff", "it is not JSON"),
    (b"[" * 100_000, "it is not JSON"),
    ('{"a": NaN}', "it is not JSON"),
    ('{"a": ' + "9" * 5000 + "}", "it is not JSON"),
    ("[]", "it is not a JSON object"),
    ('{"a": {"b": 1, "b": 2}}', "it names a field twice"),
]


def test_an_error_names_the_path_alone() -> None:
    for changes, sentence in BAD:
        with pytest.raises(JsonError) as caught:
            typed(Outer, GOOD | changes)
        assert str(caught.value).startswith(sentence)


def test_a_text_that_is_refused() -> None:
    for text, sentence in REFUSED:
        with pytest.raises(JsonError, match=f"^{sentence}$"):
            parse_object(text, unique=True)


def test_bytes_are_read_with_a_byte_order_mark_or_without() -> None:
    assert parse_object("\ufeff{}".encode()) == parse_object(b"{}") == {}


def test_a_member_by_its_path() -> None:
    value = {"a": {"b": None}}
    assert member(value, "a.c", str, "default") == "default"
    assert member(value, "a.b", str, "default") == "None"
    with pytest.raises(JsonError, match=r"^a\.b is not a JSON object$"):
        member(value, "a.b.c", str, "default")


def test_a_line_that_is_no_utf8_is_damaged_in_any_member() -> None:
    assert decode(Inner, b'{"key":"\xc3\xa9","size":1,"more":"x"}') == Inner("é", 1)
    for other in (b"\xff", b"\xed\xa0\x80", b"\xf4\x90\x80\x80"):
        with pytest.raises(JsonError, match=r"^it is not JSON$"):
            decode(Inner, b'{"key":"k","size":1,"more":"' + other + b'"}')


FIRST_USES = """
import sys, threading
from msgspec import defstruct
from auditor.model.json_codec import decode, typed
sys.setswitchinterval(1e-6)
for turn in range(40):
    inner = defstruct("Inner", [(f"f{n}", int | None, None) for n in range(20)])
    middle = defstruct("Middle", [(f"m{n}", tuple[inner, ...] | None, None) for n in range(10)])
    outer = defstruct("Outer", [("one", dict[str, middle], {}), ("two", middle | None, None)])
    start = threading.Barrier(8)
    def use(number):
        start.wait()
        if number % 2:
            decode(outer, b'{"one": {"a": {"m1": [{"f3": 1}]}}}')
        else:
            typed(outer, {"one": {"a": {"m1": [{"f3": 1}]}}})
    threads = [threading.Thread(target=use, args=(number,)) for number in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
"""


def test_first_use_of_a_type_in_several_threads() -> None:
    done = subprocess.run([sys.executable, "-c", FIRST_USES], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
