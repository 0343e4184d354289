"""M01: metadata that the configuration requires is missing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from auditor.model.object import Head
from auditor.model.toml_forms import MetadataName, form
from auditor.rules.base import Hit, Severity, rule

_Names = Annotated[list[MetadataName], form("name at least one metadata name", min_length=1)]


@rule(
    "M01",
    "metadata-required",
    Severity.MEDIUM,
    reads=("head", "config.required"),
    head=("content",),
    options={"required": _Names},
)
def check(head: Head, required: list[str]) -> Iterator[Hit]:
    """
    Why: retention, billing and access tools rely on metadata, and silently ignore an object that lacks it.
    Flagged: names under required in [rules.M01] that the object's user metadata lacks, whatever their case; one finding
        names all of them.
    Not flagged: a name with an empty value; tags, which are not metadata.
    Blind to: entries that S3 has but cannot send in a header (x-amz-missing-meta); such a name counts as missing;
        object annotations, which no rule reads.
    Fix: copy the object over itself with the metadata added, and change the program that uploads it.
    """
    present = {name.lower() for name in head.metadata}
    missing = [name for name in dict.fromkeys(name.lower() for name in required) if name not in present]
    if missing:
        yield Hit(f"required metadata is missing: {', '.join(missing)}")
