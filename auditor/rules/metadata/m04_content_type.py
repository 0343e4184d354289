"""M04: an exposed object has a Content-Type that browsers run, or one that does not say what it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from auditor.model.access import ObjectAccess
from auditor.model.object import Head
from auditor.rules.base import Hit, Severity, rule

ACTIVE: Final = frozenset({"text/html", "application/xhtml+xml", "image/svg+xml", "text/xml", "application/xml"})
"""Content types in which a browser runs scripts."""
GENERIC: Final = frozenset({"", "binary/octet-stream", "application/octet-stream", "application/x-www-form-urlencoded"})
"""Content types that uploads have whose program names none."""


@rule("M04", "content-type-exposed", Severity.LOW, reads=("head", "access"), head=("content",))
def check(head: Head, access: ObjectAccess) -> Iterator[Hit]:
    """
    Why: a browser runs the scripts of an HTML or SVG file under the bucket's host name; if a stranger placed the file,
        that is phishing in your name. Some browsers guess the type of a file that has none.
    Flagged: an exposed object of HTML, XHTML, XML or SVG (medium), or with a generic Content-Type or none (low).
    Not flagged: objects that are not exposed; a Content-Disposition of attachment, which browsers save and do not run.
    Blind to: the content of the file; object annotations; a website whose pages are public on purpose, which --ignore
        M04 leaves out.
    Fix: serve public files from a separate host, and set the Content-Type on upload.
    """
    kind = (head.content_type or "").partition(";")[0].strip().lower()
    if (head.content_disposition or "").lstrip().lower().startswith("attachment"):
        return
    if kind in ACTIVE:
        message = f"browsers run its scripts, and {access.strangers} can open it"
        yield Hit(message, severity=Severity.MEDIUM)
    elif kind in GENERIC:
        yield Hit(f"its Content-Type says nothing, and {access.strangers} can open it")
