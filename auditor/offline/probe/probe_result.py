"""The result of a probe: S3's answers beside the claims of a verdict, as text for the owner, and as JSON without keys,
bucket names and accounts to be sent back. No call is made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct, field

from auditor.model.run_lines import ObjectLine
from auditor.model.version import VERSION
from auditor.offline.probe.stranger_claims import Question, StrangerClaims
from auditor.text import counted, tallied, visible

ANSWERS: Final = "200"
REFUSALS: Final = frozenset({"400", "401", "403"})
"""Statuses by which S3 refuses a stranger: 400 to an unsigned request for an object that wants a signature."""
GONE: Final = frozenset({"404", "405"})
"""Statuses for an object that is not there, or a delete marker."""

_STRANGERS: Final = {False: "unsigned", True: "signed"}


class Found(StrEnum):
    """The result of one question."""

    AGREES = "agrees"
    DISAGREES = "disagrees"
    AGAIN = "again"
    """One answer contradicts the claim: a second one is needed."""
    GONE = "gone"
    UNSTEADY = "unsteady"
    """Two answers differ."""
    NO_ANSWER = "no answer"


class ObjectResult(StrEnum):
    """The result of one object."""

    AGREED = "agreed"
    DISAGREED = "disagreed"
    DELETED = "deleted"
    CHANGED = "changed"
    NOT_COMPARED = "not_compared"


def compare(question: Question, answers: Sequence[str]) -> Found:
    """Return the result of a question from its one or two answers: HTTP statuses, or the auditor's own error codes."""
    *earlier, last = answers
    if last in GONE:
        return Found.GONE
    if last != ANSWERS and last not in REFUSALS:
        return Found.NO_ANSWER
    if earlier and (last == ANSWERS) is not (earlier[-1] == ANSWERS):
        return Found.UNSTEADY
    if (last == ANSWERS) is question.opens:
        return Found.AGREES
    return Found.DISAGREES if earlier else Found.AGAIN


def contradicted(claims: StrangerClaims, found: Mapping[Question, Found]) -> tuple[Question, ...]:
    """Return the questions whose answers contradict the verdict. Of those in `either`, all have to."""
    against = [question for question, one in found.items() if one is Found.DISAGREES]
    open_one = not all(question in against for question in claims.either)
    return tuple(question for question in against if not (open_one and question in claims.either))


def object_result(claims: StrangerClaims, found: Mapping[Question, Found]) -> ObjectResult:
    """Return the result of an object from those of its questions."""
    results = set(found.values())
    if Found.GONE in results:
        return ObjectResult.DELETED
    if contradicted(claims, found):
        return ObjectResult.DISAGREED
    return ObjectResult.AGREED if Found.AGREES in results else ObjectResult.NOT_COMPARED


class Disagreement(Struct, frozen=True):
    """A question whose two answers contradict the verdict. line: that of the object; the JSON names no object."""

    line: ObjectLine
    question: Question
    answers: tuple[str, ...]

    @property
    def text(self) -> str:
        """The line for the owner, safe to print."""
        line = self.line
        version = "" if line.version_id is None else f", version {visible(line.version_id)},"
        asked = f"{_STRANGERS[self.question.signed]} {self.question.asked}"
        wanted = "has to be answered" if self.question.opens else "has to be refused"
        got = " and ".join(self.answers)
        return f"{visible(line.key)}{version} is {line.verdict}: {asked} {wanted}, and got {got}"

    @property
    def document(self) -> dict[str, Any]:
        """The value for JSON."""
        asked = {"call": self.question.asked.value, "signed": self.question.signed}
        return {"verdict": self.line.verdict, **asked, "open": self.question.opens, "answers": list(self.answers)}


class ProbeResult(Struct):
    """The counts of a probe. Each sampled object is counted once in `results`."""

    semantics: str
    groups: int
    sampled: int
    results: dict[ObjectResult, Counter[str]] = field(default_factory=lambda: {one: Counter() for one in ObjectResult})
    """Number of objects by result and verdict."""
    left_out: Counter[str] = field(default_factory=Counter)
    """Number of objects of which a claim was not tried, by the value of a NotTried. An object may count for several."""
    unsteady: int = 0
    """Number of objects with a question whose answers differed, or that got none."""
    disagreements: list[Disagreement] = field(default_factory=list)
    answers: Mapping[bool, Counter[str]] = field(default_factory=dict)
    """Number of answers by HTTP status: of the signed stranger by True, of the unsigned one by False."""

    def add(self, line: ObjectLine, result: ObjectResult) -> None:
        """Count one object."""
        self.results[result]["" if line.verdict is None else line.verdict.value] += 1

    def number(self, *results: ObjectResult) -> int:
        """Return how many objects have one of these results."""
        return sum(self.results[one].total() for one in results)

    @property
    def compared(self) -> int:
        """Number of objects whose verdict was compared with an answer."""
        return self.number(ObjectResult.AGREED, ObjectResult.DISAGREED)

    @property
    def exit_code(self) -> int:
        """The exit code of `auditor probe`: 3 for a disagreement, 4 if nothing was compared, else 0."""
        return 3 if self.disagreements else 0 if self.compared else 4

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON value of `auditor probe --format json`."""
        return {
            "auditor": VERSION,
            "semantics": self.semantics,
            "groups": self.groups,
            "sampled": self.sampled,
            "compared": self.compared,
            **{result.value: self.number(result) for result in ObjectResult},
            "unsteady": self.unsteady,
            "by_verdict": {result.value: dict(sorted(by.items())) for result, by in self.results.items() if by},
            "left_out": dict(sorted(self.left_out.items())),
            "answers": {_STRANGERS[signed]: dict(sorted(by.items())) for signed, by in self.answers.items()},
            "disagreements": [one.document for one in self.disagreements],
        }

    def text(self) -> str:
        """Return the result as lines for a terminal, safe to print."""
        numbers = {one: self.number(one) for one in ObjectResult}
        lines = [
            f"{counted(self.sampled, 'object')} of {counted(self.groups, 'group')}: {self.compared:,} compared,"
            f" {counted(numbers[ObjectResult.DISAGREED], 'disagreement')}"
        ]
        lines += [f"  agreed: {tallied(self.results[ObjectResult.AGREED])}"] if numbers[ObjectResult.AGREED] else []
        for result, words in _APART.items():
            lines += [f"  {words}: {numbers[result]:,}"] if numbers[result] else []
        lines += [f"  answers differed, or none came: {self.unsteady:,}"] if self.unsteady else []
        lines += [f"  not tried: {tallied(self.left_out)}"] if self.left_out else []
        lines += [f"  {_STRANGERS[signed]} answers: {tallied(by)}" for signed, by in self.answers.items() if by]
        lines += [f"DISAGREES {one.text}" for one in self.disagreements]
        return "".join(f"{line}\n" for line in lines)


_APART: Final = {
    ObjectResult.DELETED: "deleted since the run",
    ObjectResult.CHANGED: "changed since the run",
    ObjectResult.NOT_COMPARED: "not compared",
}
