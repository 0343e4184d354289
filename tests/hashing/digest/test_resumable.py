"""Resumable digests: equal to hashlib's at every boundary, and between versions of Python."""

from __future__ import annotations

import ctypes
import hashlib
import json
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from auditor.hashing.digest import resumable
from auditor.hashing.digest.resumable import BLOCK, RESUMABLE, ResumableDigest, refusal
from tests.support.generated import content
from tests.support.paths import ROOT

LENGTHS = (0, 1, 55, 56, 63, 64, 65, 119, 127, 128, 1000, 65_536, 1_000_003)
OTHERS = ("python3.11", "python3.12", "python3.13")
_GO_ON = """
import json, sys
from auditor.hashing.digest.resumable import ResumableDigest, refusal
assert refusal() is None, refusal()
given = json.load(sys.stdin)
found = {}
for name, state in given["states"].items():
    digest = ResumableDigest(name, state, given["count"])
    digest.update(memoryview(bytes.fromhex(given["more"])))
    found[name] = [digest.state(), digest.hexdigest()]
print(json.dumps(found))
"""


def test_this_machine_has_resumable_digests() -> None:
    refusal.cache_clear()  # the answer is made anew
    assert refusal() is None


@pytest.mark.parametrize("name", RESUMABLE)
def test_digest_of_any_length_is_hashlibs(name: str) -> None:
    for length in LENGTHS:
        data = content(7, 7 + length)
        for view in (memoryview(data), memoryview(bytearray(data))):
            digest = ResumableDigest(name)
            digest.update(view)
            assert (digest.hexdigest(), digest.count) == (hashlib.new(name, data).hexdigest(), length)


@pytest.mark.parametrize("name", RESUMABLE)
def test_state_after_every_block_continues_to_the_same_digest(name: str) -> None:
    data = content(0, 20 * BLOCK + 17)
    digest = ResumableDigest(name)
    for start in range(0, 20 * BLOCK, BLOCK):
        digest.update(memoryview(bytearray(data[start : start + BLOCK])))
        digest = ResumableDigest(name, digest.state(), start + BLOCK)
    digest.update(memoryview(data[20 * BLOCK :]))
    for _ in range(2):  # asking changes nothing
        assert digest.hexdigest() == hashlib.new(name, data).hexdigest()
    far = ResumableDigest(name, ResumableDigest(name).state(), 5 * 2**40)  # beyond half a gigabyte of bits
    far.update(memoryview(bytes(BLOCK)))
    assert far.count == 5 * 2**40 + BLOCK


def test_state_that_is_none_is_refused() -> None:
    digest = ResumableDigest("sha256")
    digest.update(memoryview(b"x"))
    with pytest.raises(ValueError, match="multiples of 128"):
        digest.state()
    for state, count in (("00" * 31, 128), ("00" * 32, 127), ("zz" * 32, 128)):
        with pytest.raises(ValueError, match=r"no state|hexadecimal"):
            ResumableDigest("sha256", state, count)


@pytest.mark.parametrize("right", [-1, 3], ids=["always", "after the first bytes"])
def test_library_that_hashes_wrongly_is_refused(monkeypatch: pytest.MonkeyPatch, right: int) -> None:
    class Wrong(ResumableDigest):
        def hexdigest(self) -> str:
            digest = super().hexdigest()
            return digest if self.count <= right else "0" * len(digest)

    monkeypatch.setattr(resumable, "ResumableDigest", Wrong)
    refusal.cache_clear()
    try:
        assert "sha256 is 000" in (refusal() or "")
    finally:
        refusal.cache_clear()


def test_no_library_is_a_reason_not_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> None:
        raise OSError("there is no libcrypto")

    monkeypatch.setattr(resumable, "_library", none)
    refusal.cache_clear()
    try:
        assert (refusal() or "").endswith("there is no libcrypto")
    finally:
        refusal.cache_clear()


def test_candidates_without_the_functions_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = SimpleNamespace(SHA256_Init=1, SHA512_Init=1, SHA1_Init=1, MD5_Init=1)
    found = {"half": SimpleNamespace(SHA256_Init=1), "whole": whole}

    def load(name: str) -> SimpleNamespace:
        if name not in found:
            raise OSError("no such file")
        return found[name]

    monkeypatch.setattr(ctypes, "CDLL", load)
    monkeypatch.setattr(resumable, "_candidates", lambda: iter(["absent", "half", "whole"]))
    found_one: object = resumable._library.__wrapped__()
    assert found_one is whole
    monkeypatch.setattr(resumable, "_candidates", lambda: iter(["absent", "half"]))
    with pytest.raises(OSError, match="no libcrypto"):
        resumable._library.__wrapped__()


def interpreter(name: str) -> str:
    """The path of that version of Python; skips the test without it."""
    versions = Path.home() / ".pyenv" / "versions"
    minor = name.removeprefix("python")
    known = [str(path) for path in sorted(versions.glob(f"{minor}.*/bin/{name}"))]
    found = (known or [shutil.which(name) or ""])[-1]
    if not found:
        pytest.skip(f"{name} is not on this machine")
    return found


@pytest.mark.parametrize("other", OTHERS)
def test_another_version_of_python_continues_and_back(other: str) -> None:
    first, more, last = content(0, 640), content(640, 1280), content(1280, 1300)
    states = {}
    for name in RESUMABLE:
        digest = ResumableDigest(name)
        digest.update(memoryview(first))
        states[name] = digest.state()
    given = json.dumps({"states": states, "count": len(first), "more": more.hex()})
    run = subprocess.run(
        [interpreter(other), "-c", _GO_ON],
        input=given,
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
    )
    found = json.loads(run.stdout)
    for name in RESUMABLE:
        state, digest_there = found[name]
        assert digest_there == hashlib.new(name, first + more).hexdigest()
        back = ResumableDigest(name, state, len(first) + len(more))
        back.update(memoryview(last))
        assert back.hexdigest() == hashlib.new(name, first + more + last).hexdigest()
