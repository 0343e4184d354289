"""The file keys-RANGE.json of a divided run: the policies of KMS keys that one range has read."""

from __future__ import annotations

from collections.abc import Mapping

from auditor.model.object import Unread
from auditor.runs.documents import FactFile, parsed
from auditor.runs.stores.base import Store


def keys_name(range_id: str) -> str:
    """Return the name of the file of a range."""
    return f"keys-{range_id}.json"


class KeyFile(FactFile, frozen=True, kw_only=True):
    """The content of keys-RANGE.json. policies: by the KMS key's ARN or ID as HEAD names it, the document as JSON text,
    or Unread.
    """

    policies: Mapping[str, str | Unread]


def load_keys(store: Store, folder: str, run_id: str, range_id: str) -> tuple[KeyFile, bytes] | None:
    """Return the policies that a range has read, and the bytes of its file; None if it has no such file. Blocks.

    folder: path of the run folder. Raises RunDamaged if the file is damaged, or another run's.
    """
    path = f"{folder}/{keys_name(range_id)}"
    data = store.get(path)
    return None if data is None else (parsed(data, store.uri(path), KeyFile, run_id), data)
