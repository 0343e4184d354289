"""Choose the objects that a report names beside the groups: the first exposed and undecided ones."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from auditor.model.access import Verdict
from auditor.model.finding import Judgement
from auditor.model.run_lines import UndecidedLine

EXPOSED: Final = 200
UNDECIDED: Final = 200


class ExposedObject(Struct, frozen=True):
    """An exposed object that a report names. rules: IDs of the rules that have a finding on the object."""

    key: str
    version_id: str | None
    rules: tuple[str, ...]


class Highlights:
    """Collects the objects that a report names, a limited number, out of all objects of a run."""

    def __init__(self) -> None:
        self.exposed: list[ExposedObject] = []
        self.undecided: list[UndecidedLine] = []

    def add(self, judgement: Judgement, undecided: UndecidedLine | None) -> None:
        """Add one judged object if it is exposed or undecided and there is room for it. The objects have to come in key
        order. undecided: the object's line if it is undecided, else None.
        """
        if judgement.verdict is Verdict.EXPOSED and len(self.exposed) < EXPOSED:
            ref, rules = judgement.evidence.ref, {finding.rule for finding in judgement.findings}
            self.exposed.append(ExposedObject(ref.key, ref.version_id, tuple(sorted(rules))))
        if undecided is not None and len(self.undecided) < UNDECIDED:
            self.undecided.append(undecided)
