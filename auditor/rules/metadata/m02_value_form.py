"""M02: a metadata value does not match the pattern that the configuration requires."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final

from auditor.model.object import Head
from auditor.model.toml_forms import MetadataName, form
from auditor.rules.base import Hit, Severity, rule
from auditor.rules.patterns import Pattern

_FIX: Final = "give at least one metadata name, without spaces and x-amz-meta-, with a text: a pattern such as [0-9]+"
_Patterns = Annotated[dict[MetadataName, str], form(_FIX, min_length=1)]


def validate(options: Mapping[str, Any]) -> None:
    for text in options["patterns"].values():
        Pattern.parse(text)


@rule(
    "M02",
    "metadata-value",
    Severity.MEDIUM,
    reads=("head", "config.patterns"),
    head=("content",),
    options={"patterns": _Patterns},
    validate=validate,
    values=True,
)
def check(head: Head, patterns: dict[str, str]) -> Iterator[Hit]:
    """
    Why: tools that act on metadata, such as retention or billing, treat a mistyped value as missing.
    Flagged: values that do not match the whole pattern of their name under patterns in [rules.M02], whatever the name's
        case; one finding names all of them.
    Not flagged: a name that the object lacks (M01).
    Blind to: entries that S3 has but cannot send in a header (x-amz-missing-meta); tags; object annotations.
    Fix: copy the object over itself with the right value, and change the program that uploads it.
    """
    wanted = {name.lower(): text for name, text in patterns.items()}
    given = ((name.lower(), value) for name, value in head.metadata.items())
    wrong = {name for name, value in given if name in wanted and not Pattern.parse(wanted[name]).matches(value)}
    if wrong:
        yield Hit(
            f"metadata does not match the required pattern: {', '.join(name for name in wanted if name in wrong)}"
        )
