"""The file bucket.json of a run folder: the bucket's facts, and the configuration by which the run judged.

With it a run can be judged again from its folder, without a request to the bucket.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Self

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from auditor.model.bucket import BucketFacts
from auditor.model.json_codec import JsonError
from auditor.model.object import Ask
from auditor.model.target import Target
from auditor.model.version import VERSION
from auditor.runs.documents import FactFile
from auditor.runs.seal import Link

NAME: Final = "bucket.json"


class ReadFacts(Struct, frozen=True):
    """The facts of the bucket as one process of the run read them. They hold for the parts from first_part on.

    ask: the calls that the process made for each object, or why it made none.
    """

    first_part: int
    facts: BucketFacts
    ask: Ask


class BucketFile(FactFile, frozen=True, kw_only=True):
    """The content of bucket.json."""

    target: Target
    now: str
    """The time at which conditions with a date are judged: the begin of the run that read the facts, in ISO 8601."""
    ledger: bool
    """True if the run compared the objects with a ledger."""
    selected: tuple[str, ...]
    """IDs of the rules that the run selected, in the order in which it judged them."""
    configuration: Mapping[str, Any]
    """The settings that decide on verdicts and findings, in the form of auditor.toml."""
    read: tuple[ReadFacts, ...]
    """The facts by process: one entry, unless a process that continued the run read other facts than the last one."""
    auditor: str = VERSION
    """The version of the auditor that judged."""
    judged_from: Link | None = None
    """The run whose facts these are; None if this run read them itself."""
    filled: Link | None = None
    """The run that this one fills: its lines are this run's, but for the facts that it could not read; None if this run
    listed the objects itself.
    """
    against: str | None = None
    """ID of the last complete run of the target, with which this run compares; None if there is none."""

    @property
    def facts(self) -> BucketFacts:
        """The facts that were read last."""
        return self.read[-1].facts

    def changed_facts(self) -> list[str]:
        """Return the names of the facts that differ between the processes of the run."""
        last = self.facts
        names = BucketFacts.__struct_fields__
        return [name for name in names if any(getattr(one.facts, name) != getattr(last, name) for one in self.read)]

    def resumed(self, facts: BucketFacts, ask: Ask, first_part: int) -> Self:
        """Return the file for a process that continues the run with the part first_part, and that read these facts."""
        if (self.facts, self.read[-1].ask) == (facts, ask):
            return self
        earlier = (one for one in self.read if one.first_part < first_part)
        return replace(self, read=(*earlier, ReadFacts(first_part, facts, ask)))

    def _members(self) -> dict[str, Any]:
        # A date in auditor.toml becomes text.
        return {**super()._members(), "configuration": to_builtins(self.configuration, enc_hook=dict)}

    def check(self) -> None:
        if not self.read:
            raise JsonError("is empty", "read")
