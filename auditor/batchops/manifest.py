"""A manifest as S3 Batch Operations reads it: one CSV row an object, its key percent-encoded."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

FORMAT: Final = "S3BatchOperations_CSV_20180820"
MOST_ROWS: Final = 5_000_000
"""Objects of one manifest; more begin another, so that no file outgrows the disk of a function."""


def fields(versions: bool) -> list[str]:
    """The columns' names (JobManifestSpec, S3 Control API reference)."""
    return ["Bucket", "Key", "VersionId"] if versions else ["Bucket", "Key"]


def row(bucket: str, key: str, version_id: str | None) -> str:
    """One line with its end. version_id: only where versions were listed; the null version is "null".

    Everything but letters, digits and `-._~/` is encoded, the space as %20: however a reader decodes it, by the rules
    of URLs or of forms, it comes back the same, and no cell needs a quote.
    """
    cells = [bucket, quote(key, safe="/", errors="surrogatepass")]
    if version_id is not None:
        cells.append(quote(version_id, safe=""))
    return ",".join(cells) + "\n"
