"""The folder that a verification writes: a line for each object, the summary, and the checkpoint for the next
invocation.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from auditor.errors import OutputError, RunTaken
from auditor.runs.parts import PartFile
from auditor.runs.paths import bucket_path, parse_run_id
from auditor.runs.stores.base import ConditionalStore, LockingStore, Store
from auditor.verify.checkpoint import VerifyCheckpoint, VerifyFile
from auditor.verify.summary import VerifySummary

PART_LINES: Final = 1_000_000


class VerifyFolder:
    """The folder `bucket=BUCKET/verify=ID/` in a store, which a verification writes. All methods block.

    hop: number of earlier invocations of the Lambda function for this verification.
    """

    def __init__(self, store: Store, bucket: str, verify_id: str, hop: int = 0, part_lines: int = PART_LINES) -> None:
        parse_run_id(verify_id)
        self.path = f"{bucket_path(bucket)}/verify={verify_id}"
        self._store = store
        self._id = verify_id
        self._hop = hop
        self._part_lines = part_lines
        self._parts = 0
        self._lines = 0
        self._open: PartFile | None = None

    @property
    def uri(self) -> str:
        return self._store.uri(self.path)

    def claim(self) -> None:
        """Mark this invocation (hop) as begun, by a file in the folder.

        Raises RunTaken if the file exists: Lambda has delivered the event twice, and another invocation does the work.
        """
        name = f"{self.path}/begun-{self._hop:05}.json"
        if isinstance(self._store, ConditionalStore) and self._store.put_if(name, b"{}\n", None) is None:
            raise RunTaken(f"hop {self._hop} of {self.uri} was started by another invocation, which does the work")

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

    def put_checkpoint(self, checkpoint: VerifyCheckpoint) -> None:
        """Write the checkpoint with which the next invocation of the Lambda function continues."""
        self._store.put(f"{self.path}/state-{self._hop:05}.json", checkpoint.file(self._id).to_json())

    def load_checkpoint(self) -> VerifyCheckpoint:
        """Return the checkpoint that the previous invocation wrote. Raises OutputError if it is missing or damaged."""
        path = f"{self.path}/state-{self._hop - 1:05}.json"
        data = self._store.get(path)
        try:
            file = VerifyFile.from_json(data or b"")
            if file.verify != self._id:
                raise ValueError("another run's")
            return VerifyCheckpoint.of(file)
        except ValueError as error:
            raise OutputError(f"{self._store.uri(path)} is missing or damaged: verify again") from error

    @property
    def _name(self) -> str:
        return f"combined-{self._hop:05}-{self._parts:05}.jsonl.gz"
