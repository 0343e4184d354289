"""The file keys-RANGE.json of a divided run: the policies of KMS keys that one range has read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Self

from msgspec import Struct

from auditor.model.fact_json import fact_from_json, fact_to_json
from auditor.model.json_text import document, parse_document
from auditor.model.object import Unread
from auditor.runs.documents import parsed
from auditor.runs.stores.base import Store


def keys_name(range_id: str) -> str:
    """Return the name of the file of a range."""
    return f"keys-{range_id}.json"


class KeyFile(Struct, frozen=True):
    """The content of keys-RANGE.json. policies: by the KMS key's ARN or ID as HEAD names it, the document as JSON text,
    or Unread.
    """

    run: str
    policies: Mapping[str, str | Unread]

    def to_json(self) -> bytes:
        return json.dumps(document(fact_to_json(self)), indent=1).encode() + b"\n"

    @classmethod
    def from_json(cls, data: bytes) -> Self:
        """Make a KeyFile from the JSON that to_json() wrote. Raises JsonError for anything else."""
        return fact_from_json(cls, parse_document(data))


def load_keys(store: Store, folder: str, run_id: str, range_id: str) -> tuple[KeyFile, bytes] | None:
    """Return the policies that a range has read, and the bytes of its file; None if it has no such file. Blocks.

    folder: path of the run folder. Raises RunDamaged if the file is damaged, or another run's.
    """
    path = f"{folder}/{keys_name(range_id)}"
    data = store.get(path)
    return None if data is None else (parsed(data, store.uri(path), KeyFile.from_json, run_id), data)
