"""The table by which answers are compared with claims."""

from __future__ import annotations

import pytest

from auditor.audit.probe.compare_answers import Found, ObjectResult, compare, contradicted, object_result
from auditor.audit.probe.stranger_claims import Asked, Question, StrangerClaims

OPEN = Question(Asked.HEAD, None, False, True)
CLOSED = Question(Asked.HEAD, None, False, False)
ACL = Question(Asked.ACL, None, False, True)


@pytest.mark.parametrize(
    ("question", "answers", "wanted"),
    [
        (OPEN, ["200"], Found.AGREES),
        (OPEN, ["403"], Found.AGAIN),
        (OPEN, ["403", "403"], Found.DISAGREES),
        (OPEN, ["403", "200"], Found.UNSTEADY),
        (OPEN, ["403", "400"], Found.DISAGREES),
        (OPEN, ["403", "404"], Found.GONE),
        (OPEN, ["403", "Timeout"], Found.NO_ANSWER),
        (OPEN, ["404"], Found.GONE),
        (OPEN, ["405"], Found.GONE),
        (OPEN, ["503"], Found.NO_ANSWER),
        (OPEN, ["301"], Found.NO_ANSWER),
        (CLOSED, ["403"], Found.AGREES),
        (CLOSED, ["400"], Found.AGREES),
        (CLOSED, ["401"], Found.AGREES),
        (CLOSED, ["200"], Found.AGAIN),
        (CLOSED, ["200", "200"], Found.DISAGREES),
        (CLOSED, ["200", "403"], Found.UNSTEADY),
        (CLOSED, ["ConnectionError"], Found.NO_ANSWER),
    ],
)
def test_one_question(question: Question, answers: list[str], wanted: Found) -> None:
    assert compare(question, answers) is wanted


@pytest.mark.parametrize(
    ("any_of", "found", "wanted"),
    [
        (False, (Found.AGREES, Found.AGREES), ObjectResult.AGREED),
        (False, (Found.AGREES, Found.DISAGREES), ObjectResult.DISAGREED),
        (False, (Found.AGREES, Found.UNSTEADY), ObjectResult.AGREED),
        (False, (Found.UNSTEADY, Found.NO_ANSWER), ObjectResult.NOT_COMPARED),
        (False, (Found.DISAGREES, Found.GONE), ObjectResult.DELETED),
        (True, (Found.AGREES, Found.DISAGREES), ObjectResult.AGREED),
        (True, (Found.DISAGREES, Found.DISAGREES), ObjectResult.DISAGREED),
        (True, (Found.DISAGREES, Found.NO_ANSWER), ObjectResult.NOT_COMPARED),
    ],
)
def test_one_object(any_of: bool, found: tuple[Found, Found], wanted: ObjectResult) -> None:
    claims = StrangerClaims((OPEN, ACL), either=(OPEN, ACL) if any_of else ())
    assert object_result(claims, dict(zip(claims.questions, found, strict=True))) is wanted


def test_one_of_several_ways_is_open_and_another_claim_is_wrong() -> None:
    signed = Question(Asked.HEAD, None, True, True)
    claims = StrangerClaims((CLOSED, signed, ACL), either=(signed, ACL))
    found = {CLOSED: Found.DISAGREES, signed: Found.AGREES, ACL: Found.DISAGREES}
    assert contradicted(claims, found) == (CLOSED,)
    assert contradicted(claims, {**found, CLOSED: Found.AGREES, signed: Found.DISAGREES}) == (signed, ACL)


def test_an_object_without_a_question_is_not_compared() -> None:
    assert object_result(StrangerClaims(), {}) is ObjectResult.NOT_COMPARED
