"""Read and write estate.json in the store of run folders."""

from __future__ import annotations

import json

from auditor.errors import OutputError
from auditor.model.estate import NAME, EarlierEstate, EstateReport
from auditor.model.json_text import JsonError, parse_object
from auditor.runs.stores.base import Store


def earlier_estate(store: Store) -> EarlierEstate | None:
    """Return the last estate.json of the store; None if there is none. Blocks.

    Raises OutputError if it is damaged: the names in it are those of buckets that must not be forgotten.
    """
    data = store.get(NAME)
    if data is None:
        return None
    try:
        return EarlierEstate.from_dict(parse_object(data))
    except JsonError as error:
        raise OutputError(f"{store.uri(NAME)} is damaged ({error}): move it away, and start again") from error


def write_estate(store: Store, report: EstateReport) -> None:
    """Write estate.json. Raises OutputError. Blocks."""
    store.put(NAME, (json.dumps(report.to_dict(), indent=1) + "\n").encode())
