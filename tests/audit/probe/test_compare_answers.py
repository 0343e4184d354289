"""The table by which answers are compared with claims."""

from __future__ import annotations

from auditor.audit.probe.compare_answers import Found, ObjectResult, compare, contradicted, object_result
from auditor.audit.probe.stranger_claims import Asked, Question, StrangerClaims

OPEN = Question(Asked.HEAD, None, False, True)
CLOSED = Question(Asked.HEAD, None, False, False)
ACL = Question(Asked.ACL, None, False, True)
ANSWERS = (
    (OPEN, "200", Found.AGREES),
    (OPEN, "403", Found.AGAIN),
    (OPEN, "403 403", Found.DISAGREES),
    (OPEN, "403 200", Found.UNSTEADY),
    (OPEN, "403 400", Found.DISAGREES),
    (OPEN, "403 404", Found.GONE),
    (OPEN, "403 Timeout", Found.NO_ANSWER),
    (OPEN, "404", Found.GONE),
    (OPEN, "405", Found.GONE),
    (OPEN, "503", Found.NO_ANSWER),
    (OPEN, "301", Found.NO_ANSWER),
    (CLOSED, "403", Found.AGREES),
    (CLOSED, "400", Found.AGREES),
    (CLOSED, "401", Found.AGREES),
    (CLOSED, "200", Found.AGAIN),
    (CLOSED, "200 200", Found.DISAGREES),
    (CLOSED, "200 403", Found.UNSTEADY),
    (CLOSED, "ConnectionError", Found.NO_ANSWER),
)


def test_answers_to_a_question_of_an_object_with_one_or_several_ways() -> None:
    failures = [(said, wanted) for asked, said, wanted in ANSWERS if compare(asked, said.split()) is not wanted]
    assert not failures, failures
    signed = Question(Asked.HEAD, None, True, True)
    claims = StrangerClaims((CLOSED, signed, ACL), either=(signed, ACL))
    found = {CLOSED: Found.DISAGREES, signed: Found.AGREES, ACL: Found.DISAGREES}
    assert contradicted(claims, found) == (CLOSED,)
    assert object_result(claims, found) is ObjectResult.DISAGREED
    assert object_result(claims, {**found, CLOSED: Found.AGREES}) is ObjectResult.AGREED
    assert object_result(claims, {**found, CLOSED: Found.AGREES, signed: Found.GONE}) is ObjectResult.DELETED
    unknown = {**found, CLOSED: Found.NO_ANSWER, signed: Found.NO_ANSWER}
    assert object_result(claims, unknown) is ObjectResult.NOT_COMPARED
    assert contradicted(claims, {**found, CLOSED: Found.AGREES, signed: Found.DISAGREES}) == (signed, ACL)
    assert object_result(StrangerClaims(), {}) is ObjectResult.NOT_COMPARED
