"""The checkpoint of an object that is being hashed: a JSON object with which another process continues the hashing.

The seal of a checkpoint, a hash, detects accidents such as lost bytes and mixed-up fields. A seal is no signature:
whoever can write checkpoints into the ledger can also write digests there.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from auditor.errors import CheckpointError
from auditor.hashing.digest.digester import CRC64NVME, STATE_DIGITS
from auditor.hashing.digest.resumable import BLOCK
from auditor.model.json_codec import FORMAT, JsonError, Size, plain, typed
from auditor.model.object import ObjectVersion

_HEX: Final = re.compile(r"[0-9a-f]+\Z")


class Binding(Struct, frozen=True):
    """The object version and the algorithms that a checkpoint belongs to. A checkpoint of any others is refused."""

    bucket: str
    version: ObjectVersion
    algorithms: tuple[str, ...]

    def fields(self) -> dict[str, Any]:
        version = {name: getattr(self.version, name) for name in ObjectVersion.__struct_fields__}
        return {"format": FORMAT, "bucket": self.bucket, **version, "algorithms": list(self.algorithms)}


def _check_digests(progress: HashProgress) -> None:
    """Raise JsonError for an unknown algorithm, or for a text that has not the length of its digests in hex."""
    for name, digests in (("states", progress.states), ("stored", progress.stored)):
        for algorithm, state in digests.items():
            if algorithm not in STATE_DIGITS:
                raise JsonError("names an unknown algorithm", name)
            if len(state) != STATE_DIGITS[algorithm] or not _HEX.match(state):
                raise JsonError(f"has no {algorithm} value of the right form", name)


class HashProgress(Struct, frozen=True, kw_only=True):
    """How far the hashing of one object has come.

    bytes: number of bytes hashed. bytes_read: number of bytes read, repeated reads included. states: the state of each
    running digest, in hex. stored: S3's checksums, which are compared with the digests at the object's end.
    """

    bytes: Size
    states: Mapping[str, str]
    stored: Mapping[str, str]
    bytes_read: Size


def sealed(binding: Binding, progress: HashProgress) -> dict[str, Any]:
    """Make a checkpoint from the progress: a JSON object with the object version, the algorithms, the progress, and a
    seal.
    """
    document = {**binding.fields(), **plain(progress)}
    return {**document, "seal": _seal(document)}


def opened(document: object, binding: Binding) -> HashProgress:
    """Return the progress in a checkpoint.

    Raises CheckpointError if the checkpoint is damaged, or belongs to another object version or to other algorithms.
    """
    bound = binding.fields()
    if not isinstance(document, Mapping) or set(document) != {*bound, *HashProgress.__struct_fields__, "seal"}:
        raise CheckpointError("the checkpoint does not have a checkpoint's fields")
    for name, value in bound.items():
        if document[name] != value:
            raise CheckpointError(f"the checkpoint belongs to another {name}")
    try:
        progress = typed(HashProgress, document)
        _check_digests(progress)
    except JsonError as error:
        raise CheckpointError(f"the checkpoint is damaged: {error}") from error
    if progress.bytes % BLOCK or progress.bytes >= binding.version.size:
        raise CheckpointError(f"the checkpoint's bytes are not a multiple of {BLOCK}, or are the whole object")
    if progress.bytes_read < progress.bytes:
        raise CheckpointError("the checkpoint's bytes_read are fewer than its bytes")
    beside = {CRC64NVME} & progress.stored.keys()
    if not set(binding.algorithms) <= progress.states.keys() <= set(binding.algorithms) | beside:
        raise CheckpointError("the checkpoint's states belong to other algorithms")
    if document["seal"] != _seal({name: value for name, value in document.items() if name != "seal"}):
        raise CheckpointError("the checkpoint's seal does not match its content")
    return progress


def _seal(document: Mapping[str, Any]) -> str:
    """Return the seal of a checkpoint: the SHA-256 of all its other fields."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
