"""Checkpoints: ours are read back, and any difference is refused without a quotation."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from auditor.errors import CheckpointError
from auditor.hashing.digest.checkpoint import Binding, HashProgress, _seal, opened, sealed
from auditor.model.object import ObjectVersion

VERSION = ObjectVersion("a\nkey/ü", "v1", "etag", 10**13)
BINDING = Binding("bucket", VERSION, ("sha256", "md5"))
STATES: dict[str, Any] = {"sha256": "ab" * 32, "md5": "cd" * 16, "crc64nvme": "ef" * 8}
PROGRESS = HashProgress(
    bytes=64_000,
    states=STATES,
    stored={"crc64nvme": "01" * 8},
    bytes_read=70_000,
)


def made() -> dict[str, Any]:
    """A checkpoint, as the ledger returns it."""
    document = json.loads(json.dumps(sealed(BINDING, PROGRESS)))
    assert isinstance(document, dict)
    return document


def test_checkpoint_is_read_back_as_written() -> None:
    assert opened(made(), BINDING) == PROGRESS


def test_seal_stays_the_same_over_releases_and_orders() -> None:
    assert made()["seal"] == "f4f58a1726ec61a89867cd0331e08072be8c0b73a1d65909cce0d5d98abdf35e"
    assert opened(dict(sorted(made().items())), BINDING) == PROGRESS


@pytest.mark.parametrize("name", sorted(made()))
def test_missing_field_is_refused(name: str) -> None:
    document = made()
    del document[name]
    with pytest.raises(CheckpointError, match="fields"):
        opened(document, BINDING)


CHANGES: dict[str, list[Any]] = {
    "format": [2, True, "1", 1.0, None],
    "bucket": ["other", None, 1],
    "key": ["a\nkey/u", ""],
    "version_id": ["v2", None],
    "etag": ["other", b"etag"],
    "size": [10**13 + 1, float(10**13)],
    "algorithms": [["sha256"], ["md5", "sha256"], ["sha256", "md5", "sha1"], "sha256,md5"],
    "bytes": [64_064, 63_999, -64, 10**13, 64_000.0, "64000", True, None, 2**70],
    "bytes_read": [70_001, 63_999, -1, "1", 2**70],
    "states": [
        {},
        [],
        {"sha256": "ab" * 32},
        STATES | {"sha256": "ac" * 32},
        STATES | {"sha256": "AB" * 32},
        STATES | {"sha256": "ab" * 31},
        STATES | {"sha256": "zz" * 32},
        STATES | {"sha256": 7},
        STATES | {"sha1": "ab" * 20},
        STATES | {"x": "ab"},
        STATES | {"md5": "cd" * 16 + "\n"},
    ],
    "stored": [{}, None, {"crc64nvme": "02" * 8}, {"crc32": "02" * 4}],
    "seal": ["", "0" * 64, None, 1],
}


def test_every_field_is_tampered_with() -> None:
    assert set(CHANGES) == set(made())


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in CHANGES.items() for value in values])
def test_any_field_that_was_changed_is_refused(name: str, value: Any) -> None:
    with pytest.raises(CheckpointError) as caught:
        opened(made() | {name: value}, BINDING)
    assert "abab" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("bytes", 63_999), ("bytes", 10**13), ("bytes_read", 63_999)),
        *(("states", {"sha256": "ab" * 32}), ("stored", {"crc64nvme": "x"}), ("stored", {})),
    ],
)
def test_impossible_value_is_refused_though_its_seal_fits(name: str, value: Any) -> None:
    document = made() | {name: value}
    document["seal"] = _seal({field: content for field, content in document.items() if field != "seal"})
    with pytest.raises(CheckpointError):
        opened(document, BINDING)


@pytest.mark.parametrize(
    ("states", "why"),
    [
        (STATES | {"x": "ab"}, "damaged: states names an unknown algorithm"),
        (STATES | {"md5": "cd"}, "damaged: states has no md5 value"),
        ({"sha256": "ab" * 32}, "^the checkpoint's states belong to other algorithms"),
    ],
)
def test_checkpoint_says_what_is_wrong_with_a_state(states: dict[str, str], why: str) -> None:
    with pytest.raises(CheckpointError, match=why):
        opened(made() | {"states": states}, BINDING)


@pytest.mark.parametrize("document", [None, [], "text", 7, {}, {"format": 1}])
def test_document_that_is_no_checkpoint_is_refused(document: object) -> None:
    with pytest.raises(CheckpointError):
        opened(document, BINDING)


def test_one_more_field_is_refused() -> None:
    with pytest.raises(CheckpointError, match="fields"):
        opened(made() | {"more": 1}, BINDING)


OTHERS: list[Callable[[Binding], Binding]] = [
    lambda binding: replace(binding, bucket="other"),
    lambda binding: replace(binding, version=replace(VERSION, key="other")),
    lambda binding: replace(binding, version=replace(VERSION, version_id=None)),
    lambda binding: replace(binding, version=replace(VERSION, etag="other")),
    lambda binding: replace(binding, version=replace(VERSION, size=10**13 + 1)),
    lambda binding: replace(binding, algorithms=("md5", "sha256")),
]


@pytest.mark.parametrize("other", OTHERS)
def test_checkpoint_of_another_object_is_refused(other: Callable[[Binding], Binding]) -> None:
    with pytest.raises(CheckpointError, match="belongs to another"):
        opened(made(), other(BINDING))
