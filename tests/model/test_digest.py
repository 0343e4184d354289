"""Digests survive base64 and hex unchanged; any other text gives None."""

from __future__ import annotations

import base64
import hashlib
import zlib

from auditor.model.digest import SIZES, of_base64, of_hex

SHA256 = hashlib.sha256(b"abc")


def test_size_is_the_one_that_hashlib_gives() -> None:
    for name in SIZES.keys() & hashlib.algorithms_available:
        assert hashlib.new(name, usedforsecurity=False).digest_size == SIZES[name], name


def test_digest_comes_back_in_lower_case() -> None:
    assert of_base64(base64.b64encode(SHA256.digest()), "sha256") == SHA256.hexdigest()
    assert of_hex(SHA256.hexdigest().upper(), "sha256") == SHA256.hexdigest()
    crc = zlib.crc32(b"abc")
    assert of_base64(base64.b64encode(crc.to_bytes(4, "big")).decode(), "crc32") == f"{crc:08x}"


def test_text_that_is_no_digest_is_none() -> None:
    short = base64.b64encode(SHA256.digest()[:31]).decode()
    for text in ("", "é" * 44, "=" * 44, "abc", short, "AAAA" * 11, "AA AA" * 9):
        assert of_base64(text, "sha256") is None, text
    for text in ("", "g" * 64, "a" * 63, "a" * 65, "٣" * 64, " " + "a" * 63, "a" * 63 + "\n"):
        assert of_hex(text, "sha256") is None, text
