"""The forms of checksum manifests (sha256sum, BagIt, CSV) by name, and the detection of a file's form."""

from __future__ import annotations

from typing import Final

from auditor.ledger.manifests.bagit import BAGIT, is_bagit
from auditor.ledger.manifests.base import Form, ManifestFile
from auditor.ledger.manifests.csv_table import TABLE, is_header
from auditor.ledger.manifests.sums import SUMS, is_line

FORMS: Final[dict[str, Form]] = {form.name: form for form in (SUMS, BAGIT, TABLE)}
AUTO: Final = "auto"


def form_of(source: ManifestFile) -> Form:
    """Return the form of a manifest file: by the file's name (BagIt's names, .csv), or else by its first line with
    content.

    Raises ManifestError if that line does not fit any form.
    """
    if is_bagit(source.shown):
        return BAGIT
    if source.shown.lower().endswith(".csv"):
        return TABLE
    for number, line in source.lines():
        text = line.removesuffix("\n").removesuffix("\r")
        if is_line(text):
            return SUMS
        if is_header(text):
            return TABLE
        if text and not text.startswith("#"):
            raise source.error(
                number, f"this does not begin like any known manifest: name its form, --manifest {' or '.join(FORMS)}"
            )
    return SUMS
