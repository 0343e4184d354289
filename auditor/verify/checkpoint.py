"""The checkpoint of a verification: the counts up to an object key, and the state of objects that were read in part.

A verification in Lambda consists of invocations, one after the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal, Self

from msgspec import Struct, field

from auditor.model.dates import iso_date
from auditor.model.object import Whole
from auditor.verify.pipeline import Done
from auditor.verify.tally import VerifyTally

Unfinished = dict[tuple[str, str | None], Mapping[str, Any]]
"""The hashing checkpoints of objects that were read in part, by object key and version ID."""
Stage = Literal["working", "saved", "ended"]


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
