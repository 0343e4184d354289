"""V01: a noncurrent version of the object is exposed."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.model.access import ObjectAccess
from auditor.model.object import ObjectRef
from auditor.rules.base import Hit, Severity, rule


@rule("V01", "version-exposed", Severity.HIGH, reads=("ref", "access"))
def check(ref: ObjectRef, access: ObjectAccess) -> Iterator[Hit]:
    """
    Why: each version has its own ACL: after the current version is closed or deleted, anyone who knows the ID of the
        old one can still read it; version listings and old logs reveal the ID.
    Flagged: a version that is not the current one, and is exposed. Only a run with --versions sees such versions.
    Not flagged: the current version, which its own rules judge (O01 to O05, O16).
    Blind to: whether the current version is exposed, too; delete markers, which hide the key but no version.
    Fix: delete the version, or set its ACL with PutObjectAcl and the version ID.
    """
    if not ref.is_latest:
        yield Hit(f"this noncurrent version is exposed: {access.strangers} can reach it by its version ID")
