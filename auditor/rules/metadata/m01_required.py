"""M01: metadata that the configuration requires is missing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from auditor.model.finding import Severity
from auditor.model.object import Head
from auditor.rules.base import Hit, rule

PREFIX: Final = "x-amz-meta-"


def validate(options: Mapping[str, Any]) -> None:
    names = options["required"]
    if not names:
        raise ValueError("required must name at least one metadata name")
    for name in names:
        if not isinstance(name, str) or name.split() != [name]:
            raise ValueError("required must hold metadata names, which are text without spaces and not empty")
        if name.lower().startswith(PREFIX):
            raise ValueError(f"required must hold names without {PREFIX}")


@rule(
    "M01",
    "metadata-required",
    Severity.MEDIUM,
    reads=("head", "config.required"),
    head=("content",),
    options={"required": list},
    validate=validate,
)
def check(head: Head, required: list[str]) -> Iterator[Hit]:
    """
    Why: retention, billing and access tools rely on metadata, and silently ignore an object that lacks it.
    Flagged: names of required in [rules.M01] that the object's user metadata lacks, whatever their case; one finding
        names all of them.
    Not flagged: a name with an empty value; tags, which are not metadata.
    Blind to: entries that S3 has but cannot send in a header (x-amz-missing-meta); such a name counts as missing;
        object annotations, which no rule reads.
    Fix: copy the object over itself with the metadata added, and change the program that uploads.
    """
    present = {name.lower() for name in head.metadata}
    missing = [name for name in dict.fromkeys(name.lower() for name in required) if name not in present]
    if missing:
        yield Hit(f"required metadata is missing: {', '.join(missing)}")
