"""The checkpoint of one object: how far its hashing is, as a JSON object that another process continues.

The seal detects accidents, such as lost bytes and mixed-up fields. It is no signature, which would add nothing: a
writer of checkpoints in the ledger can write digests there as well.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from auditor.errors import CheckpointError
from auditor.hashing.digest.digester import CRC64NVME, STATE_DIGITS
from auditor.hashing.digest.resumable import BLOCK
from auditor.model.object import ObjectVersion

VERSION: Final = 1
_HEX: Final = re.compile(r"[0-9a-f]+\Z")
_MOST: Final = 2**53


@dataclass(frozen=True, slots=True)
class Binding:
    """The object version and the algorithms that a checkpoint belongs to; it is refused for any others."""

    bucket: str
    version: ObjectVersion
    algorithms: tuple[str, ...]

    def fields(self) -> dict[str, Any]:
        version = self.version
        return {
            "bucket": self.bucket,
            "key": version.key,
            "version_id": version.version_id,
            "etag": version.etag,
            "size": version.size,
            "algorithms": list(self.algorithms),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class HashProgress:
    """bytes: hashed so far. bytes_read: the same with those of cut and repeated reads.

    states: hex by algorithm. stored: checksums of S3, for the comparison at the end.
    """

    bytes: int
    states: Mapping[str, str]
    stored: Mapping[str, str]
    bytes_read: int


def sealed(binding: Binding, progress: HashProgress) -> dict[str, Any]:
    """The checkpoint as a JSON object."""
    document = {
        "v": VERSION,
        **binding.fields(),
        "bytes": progress.bytes,
        "states": dict(progress.states),
        "stored": dict(progress.stored),
        "bytes_read": progress.bytes_read,
    }
    return {**document, "seal": _seal(document)}


def opened(document: object, binding: Binding) -> HashProgress:
    """Read a checkpoint of this binding. Raises CheckpointError, which never quotes the document."""
    bound = binding.fields()
    names = {"v", "bytes", "states", "stored", "bytes_read", "seal", *bound}
    if not isinstance(document, Mapping) or set(document) != names:
        raise CheckpointError("the checkpoint has not the fields of one")
    if type(document["v"]) is not int or document["v"] != VERSION:
        raise CheckpointError(f"the checkpoint's version is not {VERSION}")
    for name, value in bound.items():
        if type(document[name]) is not type(value) or document[name] != value:
            raise CheckpointError(f"the checkpoint is of another {name}")
    count = _whole(document, "bytes", binding.version.size - 1)
    if count % BLOCK:
        raise CheckpointError(f"the checkpoint's bytes are not a multiple of {BLOCK}")
    bytes_read = _whole(document, "bytes_read", _MOST)
    if bytes_read < count:
        raise CheckpointError("the checkpoint's bytes_read are fewer than its bytes")
    stored = _digests(document, "stored")
    states = _digests(document, "states")
    beside = {CRC64NVME} & stored.keys()
    if not set(binding.algorithms) <= states.keys() <= set(binding.algorithms) | beside:
        raise CheckpointError("the checkpoint's states are of other algorithms")
    if document["seal"] != _seal({name: value for name, value in document.items() if name != "seal"}):
        raise CheckpointError("the checkpoint's seal does not fit its content")
    return HashProgress(bytes=count, states=states, stored=stored, bytes_read=bytes_read)


def _whole(document: Mapping[Any, Any], name: str, most: int) -> int:
    value = document[name]
    if type(value) is not int or not 0 <= value <= most:
        raise CheckpointError(f"the checkpoint's {name} are no number of bytes that can be")
    return value


def _digests(document: Mapping[Any, Any], name: str) -> dict[str, str]:
    value = document[name]
    if not isinstance(value, dict):
        raise CheckpointError(f"the checkpoint's {name} are no JSON object")
    for algorithm, text in value.items():
        if algorithm not in STATE_DIGITS:
            raise CheckpointError(f"the checkpoint's {name} name an algorithm that is not known")
        if not isinstance(text, str) or len(text) != STATE_DIGITS[algorithm] or not _HEX.match(text):
            raise CheckpointError(f"the checkpoint's {name} have no such {algorithm}")
    return dict(value)


def _seal(document: Mapping[Any, Any]) -> str:
    try:
        text = json.dumps(document, ensure_ascii=True, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise CheckpointError("the checkpoint is not JSON") from error
    return hashlib.sha256(text.encode()).hexdigest()
