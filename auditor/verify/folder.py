"""The folder that a verification writes: a line for each object, the summary, and the state for the next invocation."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Sequence
from typing import Any, Final

from msgspec.structs import replace

from auditor.errors import OutputError, RunComplete, RunTaken
from auditor.model.json_codec import plain, typed
from auditor.runs.ownership import EMPTY_PART
from auditor.runs.parts import PartFile
from auditor.runs.paths import bucket_path, parse_run_id
from auditor.runs.stores.base import ConditionalStore, LockingStore, Store
from auditor.verify.checkpoint import Stage, VerifyCheckpoint, VerifyFile
from auditor.verify.summary import VerifySummary

PART_LINES: Final = 1_000_000


class VerifyFolder:
    """The folder `bucket=BUCKET/verify=ID/` in a store, which a verification writes. All methods block.

    release: lets another invocation take up the verification. resumed: True if an earlier one has taken it up.
    """

    def __init__(self, store: Store, bucket: str, verify_id: str, part_lines: int = PART_LINES) -> None:
        parse_run_id(verify_id)
        self.path = f"{bucket_path(bucket)}/verify={verify_id}"
        self._store = store
        self._id = verify_id
        self._state = f"{self.path}/state.json"
        self._writer = secrets.token_hex(8)
        self.release: Callable[[], object] = lambda: None
        self.resumed = False
        self._part_lines = part_lines
        self._parts = 0
        self._lines = 0
        self._open: PartFile | None = None

    @property
    def uri(self) -> str:
        return self._store.uri(self.path)

    def take_up(self, first: VerifyCheckpoint) -> VerifyCheckpoint:
        """Take up the verification, in place of any earlier invocation, and return the checkpoint to begin with.

        The earlier invocation, if it still works, can write no state any more, and no part. The parts that it wrote
        since its last state are overwritten. first: the checkpoint of a verification that has no state yet. Raises
        RunComplete after its end; RunTaken if another invocation takes it up at the same time, or holds the lock of a
        directory; OutputError if the state is damaged.
        """
        if isinstance(self._store, LockingStore):
            self.release = self._store.hold(self.path, "state")
        found: list[VerifyFile] = []

        def claim(value: dict[str, Any] | None) -> dict[str, Any] | None:
            file = first.file(self._id) if value is None else typed(VerifyFile, value)
            if file.verify != self._id:
                raise ValueError("another run's")
            if file.writer == self._writer:  # our own write, whose answer was lost
                return None
            if found and file.writer != found[0].writer:
                raise self._taken()
            found.append(file)
            self.resumed = value is not None
            claimed = replace(file, writer=self._writer, stage="working", fruitless=file.fruitless + 1)
            return None if file.stage == "ended" else plain(claimed)

        try:
            self._store.update_json(self._state, claim)
            checkpoint = VerifyCheckpoint.of(found[-1])
        except ValueError as error:
            raise OutputError(f"{self._store.uri(self._state)} is damaged: verify again") from error
        if found[-1].stage == "ended":
            raise RunComplete(f"the verification {self.uri} has ended")
        self._parts = found[-1].parts
        if found[-1].stage == "working":
            self._drop_unsaved()
        return checkpoint

    def put_state(self, checkpoint: VerifyCheckpoint, *, ended: bool = False) -> None:
        """Write the state from which the next invocation continues. All lines must be in closed parts.

        ended: True if none may continue. Raises RunTaken if another invocation has taken up the verification.
        """
        stage: Stage = "ended" if ended else "saved"
        file = checkpoint.file(self._id)
        members: dict[str, Any] = plain(replace(file, parts=self._parts, writer=self._writer, stage=stage))

        def change(value: dict[str, Any] | None) -> dict[str, Any]:
            if value is None or value.get("writer") != self._writer:
                raise self._taken()
            return members

        self._store.update_json(self._state, change)

    def _drop_unsaved(self) -> None:
        """Overwrite the parts beyond the state, and the next one, which a living invocation may be about to write."""
        there = self._store.list(f"{self.path}/combined-")
        more = True
        while more:
            path = f"{self.path}/{self._name}"
            self._store.put(path, EMPTY_PART)
            self._parts += 1
            more = path in there

    def _taken(self) -> RunTaken:
        return RunTaken(f"{self.uri} was taken up by another invocation: this one stops, and counts nothing")

    def write(self, lines: Sequence[bytes]) -> None:
        """Write lines of JSON, each with its newline, to the open part of the report. If no part is open, open one."""
        for line in lines:
            if self._open is None:
                self._open = PartFile(self._store.spool_dir(self.path) / f".{self._name}.tmp")
            self._open.write([line])
            self._lines += 1
            if self._lines >= self._part_lines:
                self.end_part()

    def end_part(self) -> None:
        """Close the open part of the report, and move it to its final path; do nothing if no part is open.

        Raises RunTaken if the path exists in a store without locks: another process writes this report too.
        """
        if self._open is None:
            return
        part, self._open = self._open, None
        part.close()
        path = f"{self.path}/{self._name}"
        if isinstance(self._store, LockingStore):
            self._store.replace_file(path, part.path)
        elif not isinstance(self._store, ConditionalStore) or not self._store.put_new_file(path, part.path):
            raise RunTaken(
                f"{self._store.uri(path)} exists already: another process verifies this run, so this one stops"
            )
        self._parts += 1
        self._lines = 0

    def discard(self) -> None:
        """Delete the open part of the report; do nothing if no part is open."""
        if self._open is not None:
            self._open.discard()
            self._open = None

    def put_summary(self, summary: VerifySummary) -> None:
        self._store.put(f"{self.path}/summary.json", json.dumps(summary.to_dict(), indent=1).encode() + b"\n")

    def put_page(self, page: str) -> None:
        self._store.put(f"{self.path}/report.html", page.encode())

    @property
    def _name(self) -> str:
        return f"combined-00000-{self._parts:05}.jsonl.gz"
