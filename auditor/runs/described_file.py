"""The file of a run folder that describes what its lines are judged by, such as bucket.json."""

from __future__ import annotations

from collections.abc import Callable

from auditor.aio.threads import side_by_side
from auditor.runs.checkpoint import Checkpoint
from auditor.runs.folder_seal import FolderSeal
from auditor.runs.ownership import RunWriter
from auditor.runs.stores.base import Store


class DescribedFile:
    """Writes the file when the run is claimed, and again where its content has changed. All methods block.

    path: of the run folder. name: of the file. make: returns its bytes, given the number of the first part that this
    process writes; None to write no such file. data: the bytes that it has by now; b"" if it is not there. growing:
    True if it grows with the lines. seal: notes its bytes.
    """

    def __init__(
        self,
        store: Store,
        path: str,
        name: str,
        make: Callable[[int], bytes] | None,
        data: bytes,
        seal: FolderSeal,
        *,
        growing: bool,
    ) -> None:
        self._store = store
        self._path = path
        self.name = name
        self._make = make
        self._seal = seal
        self._growing = growing
        self._first_part = 0
        self.data = data
        """The bytes of the file by now; b"" if the run has no such file."""

    def claim(self, writer: RunWriter, loaded: Checkpoint | None, start: Checkpoint) -> Checkpoint:
        """Claim the run, write the file, and return the checkpoint to begin with. loaded: that of the run to resume.
        start: that of a new one. Raises RunTaken if another process writes the run.
        """
        if self._make is None or loaded is not None:
            first = writer.claim(loaded, start)
            self._first_part = first.next_part
            if self._make is not None:
                self._put(self._make(first.next_part))
            return first
        made = self._make(start.next_part)
        claimed, early = [], []
        side_by_side(
            [
                lambda: claimed.append(writer.claim(None, start)),
                lambda: early.append(writer.put_early(self.name, made)),
            ]
        )
        self._put(made, there=early == [True])
        self._first_part = claimed[0].next_part
        return claimed[0]

    def grow(self) -> None:
        """Write the file again if it grows with the lines: what was read meanwhile belongs to them."""
        if self._make is not None and self._growing:
            self._put(self._make(self._first_part))

    def _put(self, data: bytes, *, there: bool = False) -> None:
        """Write the file, unless it has this content. there: True if it has been written just now."""
        self._seal.note(self.name, data)
        if not there and data != self.data:
            self._store.put(f"{self._path}/{self.name}", data)
        self.data = data
