"""Compare S3's answers with the claims of a verdict: a pure table, without a call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final

from auditor.offline.probe.stranger_claims import Question, StrangerClaims

ANSWERS: Final = "200"
REFUSALS: Final = frozenset({"400", "401", "403"})
"""Statuses by which S3 refuses a stranger: 400 to an unsigned request for an object that wants a signature."""
GONE: Final = frozenset({"404", "405"})
"""Statuses for an object that is not there, or a delete marker."""


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
