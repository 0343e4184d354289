"""Change a file of claims in the store of run folders: each write is conditional, so of two at once one succeeds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from auditor.errors import RunComplete, RunTaken
from auditor.runs.stores.base import Store

T = TypeVar("T")


class ClaimBusy(Exception):  # noqa: N818 - the invocation waits, and no user sees it
    """Raised if something cannot be claimed now, because another invocation has it and may yet end or die."""


def claim_in(store: Store, path: str, choose: Callable[[Mapping[str, Any]], tuple[dict[str, Any] | None, T]]) -> T:
    """Change the JSON file `path` to claim something, and return what was claimed. Blocks.

    choose: gets the value of the file, {} if there is none, and returns the new value and what is claimed. The new
    value is None to leave the file as it is. It is called again if the file has changed since it was read. It raises
    ClaimBusy, RunTaken or RunComplete if there is nothing to claim; this is raised for the file as it is in the store,
    never for an earlier state that the store remembers.
    """
    claimed: list[T] = []
    refused: list[Exception] = []

    def change(value: dict[str, Any] | None) -> dict[str, Any] | None:
        claimed.clear()
        refused.clear()
        try:
            new, found = choose(value or {})
        except (ClaimBusy, RunTaken, RunComplete) as refusal:  # raised below: the store did not fail, and looks again
            refused.append(refusal)
            return None
        claimed.append(found)
        return new

    store.update_json(path, change)
    if refused:
        raise refused[0]
    return claimed[0]
