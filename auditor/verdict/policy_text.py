"""Find the lines of a bucket policy's statements in the policy's text, and the line of an error."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from json import JSONDecodeError
from typing import Any, Final

from msgspec import Struct

from auditor.model.policy import parse
from auditor.model.wildcard import Wildcard

_DECODER: Final = json.JSONDecoder()
_BLANK: Final = re.compile(r"[ \t\r\n]*")


class PolicyTextError(ValueError):
    """The text is not a bucket policy. The message names the line."""


class StatementLines(Struct, frozen=True):
    """The place of one statement in the text of a policy: its first and its last line, from 1. name: the statement's
    name in reasons (Policy.names).
    """

    name: str
    first: int
    last: int


def check_policy(text: str) -> None:
    """Raise PolicyTextError, whose message names the line, unless the text is a bucket policy."""
    try:
        document = json.loads(text)
    except JSONDecodeError as error:
        raise PolicyTextError(f"line {error.lineno}, column {error.colno}: {error.msg}") from error
    except (ValueError, RecursionError) as error:
        raise PolicyTextError("it is not JSON, or nested too deep") from error
    try:
        parse(text)
    except ValueError as error:
        raise PolicyTextError(f"{_place(text, document)}{error}") from error


def _place(text: str, document: Any) -> str:
    """Return the words that name the line of the first statement that is wrong by itself; "" if no statement is."""
    try:
        found = list(_statements(text))
    except (ValueError, RecursionError):
        return ""
    version = document.get("Version", "2008-10-17") if isinstance(document, dict) else None
    for number, (statement, start, _) in enumerate(found, 1):
        try:
            parse(json.dumps({"Version": version, "Statement": [statement]}))
        except ValueError:
            return f"line {_line(text, start)}, statement {number}: "
    return ""


def statement_lines(text: str) -> list[StatementLines]:
    """Return the lines of each statement, in order. text: "" or a policy that check_policy() accepts."""
    if not text:
        return []
    return [
        StatementLines(name, _line(text, start), _line(text, end - 1))
        for name, (_, start, end) in zip(parse(text).names, _statements(text), strict=True)
    ]


def without_statements(text: str, names: Iterable[str]) -> str:
    """Return the policy without some statements; "" if no statement is left. names: the statements to drop, as in
    Policy.names. text: "" or a policy that check_policy() accepts.
    """
    gone = set(names)
    found = zip(parse(text).names, _statements(text), strict=True) if text else ()
    left = [statement for name, (statement, _, _) in found if name not in gone]
    return json.dumps({**json.loads(text), "Statement": left}) if left else ""


def statements_of_others(text: str, bucket: str) -> list[str]:
    """Return the names of the statements that name no resource of this bucket. S3 refuses a policy with such a
    statement. text: "" or a policy that check_policy() accepts.
    """
    policy = parse(text)
    return [
        name
        for name, statement in zip(policy.names, policy.statements, strict=True)
        if not statement.not_resource and not any(_of_bucket(resource, bucket) for resource in statement.resources)
    ]


def _of_bucket(resource: str, bucket: str) -> bool:
    """True if the resource may be the bucket, or an object in it."""
    path = resource.split(":", 5)[-1] if resource.startswith("arn:") else resource
    named, _, _ = path.partition("/")
    return Wildcard.of(named).matches(bucket)


def _line(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1


def _statements(text: str) -> Iterator[tuple[Any, int, int]]:
    """Yield each statement with the offsets of its beginning and its end. Raises ValueError."""
    at = _skip(text, _skip(text, 0) + 1)
    while text[at] != "}":
        name, at = _DECODER.raw_decode(text, at)
        at = _skip(text, _skip(text, at) + 1)
        if name != "Statement":
            _, at = _DECODER.raw_decode(text, at)
        elif text[at] == "[":
            at = _skip(text, at + 1)
            while text[at] != "]":
                start = at
                value, at = _DECODER.raw_decode(text, at)
                yield value, start, at
                at = _comma(text, at)
            at += 1
        else:
            start = at
            value, at = _DECODER.raw_decode(text, at)
            yield value, start, at
        at = _comma(text, at)


def _skip(text: str, at: int) -> int:
    """Return the offset of the first character that is not a blank, from `at` on."""
    found = _BLANK.match(text, at)
    return found.end() if found else at


def _comma(text: str, at: int) -> int:
    """Skip blanks and a comma. Return the offset of the next value or closing bracket."""
    at = _skip(text, at)
    return _skip(text, at + 1) if text[at : at + 1] == "," else at
