"""Load the JSON files of a run folder, with one sentence for each that cannot be read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol, TypeVar

from auditor.errors import OldRun, RunDamaged
from auditor.model.json_text import JsonError, OldFormatError
from auditor.runs.stores.base import Store

ANEW: Final = "start a new run"
AGAIN: Final = "audit again"


class OfRun(Protocol):
    """The content of a file that names its run."""

    @property
    def run(self) -> str: ...


T = TypeVar("T", bound=OfRun)


def load(store: Store, path: str, parse: Callable[[bytes], T], run_id: str, fix: str = ANEW) -> T | None:
    """Return the content of the file `path`; None if there is no such file. Blocks.

    parse: makes the content from the bytes, and raises JsonError. run_id: of the run that the file has to name. fix:
    the user's next step if the file is damaged. Raises RunDamaged, which names the file.
    """
    data = store.get(path)
    return None if data is None else parsed(data, store.uri(path), parse, run_id, fix)


def parsed(data: bytes, uri: str, parse: Callable[[bytes], T], run_id: str, fix: str = ANEW) -> T:
    """Return the content of a file. uri: of the file, for the error; the other parameters are those of load()."""
    try:
        found = parse(data)
        if found.run != run_id:
            raise JsonError("is another run's")
    except JsonError as error:
        raise damaged(uri, error, fix) from error
    return found


def damaged(uri: str, error: Exception, fix: str = ANEW) -> RunDamaged:
    """Return the error for a file that cannot be read. error: the reason."""
    if isinstance(error, OldFormatError):
        return OldRun(f"{uri} {error.problem}")
    return RunDamaged(f"{uri} is damaged ({error}): {fix}")
