"""Checkpoints: ours are read back, and any difference is refused without a quotation."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from auditor.errors import CheckpointError
from auditor.hashing.digest.checkpoint import Binding, HashProgress, opened, sealed
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


def test_any_field_that_is_missing_or_was_changed_is_refused() -> None:
    assert set(CHANGES) == set(made())
    documents: list[object] = [None, [], "text", 7, {}, {"format": 1}, made() | {"more": 1}]
    documents += [{field: value for field, value in made().items() if field != name} for name in made()]
    documents += [made() | {name: value} for name, values in CHANGES.items() for value in values]
    failures: list[object] = []
    for document in documents:
        try:
            failures.append((document, opened(document, BINDING)))
        except CheckpointError as error:
            if "abab" in str(error):
                failures.append((document, str(error)))
    assert not failures, failures


def test_impossible_value_is_refused_though_its_seal_fits() -> None:
    changes: list[tuple[str, Any]] = [("bytes", 63_999), ("bytes", 10**13), ("bytes_read", 63_999)]
    changes += [("states", {"sha256": "ab" * 32}), ("stored", {"crc64nvme": "x"})]
    for name, value in changes:
        forged = sealed(BINDING, replace(PROGRESS, **{name: value}))
        with pytest.raises(CheckpointError, match=r"damaged|bytes|other algorithms"):
            opened(json.loads(json.dumps(forged)), BINDING)


def test_checkpoint_says_what_is_wrong_with_a_state() -> None:
    for states, why in (
        (STATES | {"x": "ab"}, "damaged: states names an unknown algorithm"),
        (STATES | {"md5": "cd"}, "damaged: states has no md5 value"),
        ({"sha256": "ab" * 32}, "^the checkpoint's states belong to other algorithms"),
    ):
        with pytest.raises(CheckpointError, match=why):
            opened(made() | {"states": states}, BINDING)


def test_checkpoint_of_another_object_is_refused() -> None:
    others = [replace(BINDING, version=replace(VERSION, **{name: None})) for name in ("key", "version_id", "etag")]
    others.append(replace(BINDING, version=replace(VERSION, size=10**13 + 1)))
    for other in (*others, replace(BINDING, bucket="other"), replace(BINDING, algorithms=("md5", "sha256"))):
        with pytest.raises(CheckpointError, match="belongs to another"):
            opened(made(), other)
