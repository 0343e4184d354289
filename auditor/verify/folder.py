"""The folder that a verification writes: a line for each object, the summary, and a checkpoint for the next invocation.

A verification in Lambda consists of invocations, one after the other. The checkpoint has the counts up to an object
key, and the state of objects that were read in part.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Literal, Self

from msgspec import Struct, field
from msgspec.structs import replace

from auditor.errors import OutputError, RunComplete, RunTaken
from auditor.model.dates import iso_date
from auditor.model.json_codec import plain, typed
from auditor.model.object import Whole
from auditor.runs.ownership import EMPTY_PART
from auditor.runs.parts import PartFile
from auditor.runs.paths import bucket_path, parse_run_id
from auditor.runs.stores.base import ConditionalStore, LockingStore, Store
from auditor.verify.pipeline import Done
from auditor.verify.summary import VerifySummary
from auditor.verify.tally import VerifyTally

Unfinished = dict[tuple[str, str | None], Mapping[str, Any]]
"""The hashing checkpoints of objects that were read in part, by object key and version ID."""
Stage = Literal["working", "saved", "ended"]

PART_LINES: Final = 1_000_000


class VerifyFile(Struct, frozen=True, kw_only=True):
    """The content of state.json, the file of a checkpoint, besides its format."""

    verify: str
    """The verification's ID."""
    as_of: str
    begun_after: str | None
    tally: VerifyTally
    start_after: str | None
    unfinished: tuple[tuple[str, str | None, Mapping[str, Any]], ...]
    """The objects that were read in part: key, version ID, and the state of the hashing, which is not yet validated."""
    fruitless: Whole
    parts: Whole = 0
    """Number of parts of the combined report, which have the lines of all counted objects."""
    writer: str = ""
    """Random name of the invocation that took up the verification last. No other one may write the file."""
    stage: Stage = "saved"
    """`working` until the writer has saved its checkpoint: there may be further parts. `ended` after the end."""


class VerifyCheckpoint(Struct):
    """The state of a verification at the end of an invocation of the Lambda function, from which the next invocation
    continues.
    """

    as_of: datetime
    """Time at which the first invocation began. In every invocation, this time decides which objects are due."""
    begun_after: str | None
    """Key after which the target's key range begins; None if it begins with the first key."""
    start_after: str | None
    """The last key that is counted in `tally`; equal to `begun_after` as long as no key is counted."""
    tally: VerifyTally = field(default_factory=VerifyTally)
    resumed: Unfinished = field(default_factory=dict)
    """Objects that earlier invocations read in part, and that this invocation reads to their ends."""
    paused: Unfinished = field(default_factory=dict)
    """Objects that this invocation read in part, and left to the next one."""
    fruitless: int = 0
    """Number of invocations in a row, with this one until it makes progress, that made none."""
    cut: bool = False
    """True if a stop ended this invocation before the objects in flight were finished, perhaps between two versions of
    its last key."""
    _before: tuple[VerifyTally, str | None] | None = None
    """`tally` and `start_after` before the first result for the key `start_after`; None unless the run lists
    versions."""

    def move(self, done: Done, *, versions: bool, accepted: bool = False) -> None:
        """Count the result of the next object, in key order, and move on to its key.

        versions: True if the run lists versions, so that a key can have several results. accepted: True if auditor.toml
        accepts that this object was not read.
        """
        if versions and done.key != self.start_after:
            self._before = self.tally.copy(), self.start_after
        self.start_after = done.key
        self.tally.delete_markers += done.delete_markers
        if done.answer is not None:
            self.tally.add(done.answer, done.late, accepted=accepted)

    @property
    def kept(self) -> tuple[VerifyTally, str | None]:
        """The tally that this invocation leaves to the next one, and the last key that is counted in it.

        If a version of the last key was not read to its end, all counts of this key are left out. The next invocation
        then begins with this key.
        """
        if self._before is not None and (self.cut or any(key == self.start_after for key, _ in self.paused)):
            self._before[0].healed = self.tally.healed  # the next invocation finds these rows sound
            return self._before
        return self.tally, self.start_after

    def file(self, verify_id: str) -> VerifyFile:
        """Return the checkpoint as its file has it, with the tally that is kept, and the objects after it that were
        read in part.
        """
        tally, start_after = self.kept
        left = {name: one for name, one in self.resumed.items() if name[0] > (start_after or "")}
        return VerifyFile(
            verify=verify_id,
            as_of=self.as_of.isoformat(),
            begun_after=self.begun_after,
            tally=tally,
            start_after=start_after,
            unfinished=tuple((*name, one) for name, one in (left | self.paused).items()),
            fruitless=self.fruitless,
        )

    @classmethod
    def of(cls, file: VerifyFile) -> Self:
        """Return the checkpoint with which an invocation begins. Raises ValueError if the file is damaged."""
        file.tally.check()
        resumed = {(key, version_id): one for key, version_id, one in file.unfinished}
        as_of, fruitless = iso_date(file.as_of), file.fruitless + 1
        return cls(as_of, file.begun_after, file.start_after, file.tally, resumed, fruitless=fruitless)


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
