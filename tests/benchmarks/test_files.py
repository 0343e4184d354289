"""The benchmark's bucket of run folders takes the calls of our store, conditions included."""

from __future__ import annotations

from benchmarks.server.files import Files


def test_conditions() -> None:
    files = Files()
    assert files.answer("GET", "k", {}, b"")[0] == 404
    assert files.answer("PUT", "k", {b"if-match": b'"e"'}, b"a")[0] == 404
    status, etag, _ = files.answer("PUT", "k", {b"if-none-match": b"*"}, b"a")
    assert status == 200
    assert files.answer("PUT", "k", {b"if-none-match": b"*"}, b"b")[0] == 412
    assert files.answer("PUT", "k", {b"if-match": b'"e"'}, b"b")[0] == 412
    assert files.answer("PUT", "k", {b"if-match": etag}, b"b")[0] == 200
    assert files.answer("GET", "k", {}, b"")[2] == b"b"
    assert b"<Key>k</Key>" in files.listing("k")
    assert b"<Key>" not in files.listing("other")
    assert files.answer("DELETE", "k", {}, b"")[0] == 204
    assert files.answer("GET", "k", {}, b"")[0] == 404
