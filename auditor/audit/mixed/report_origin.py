"""The S3 Inventory report that the facts of a run come from."""

from __future__ import annotations

from msgspec import Struct

from auditor.text import counted, visible


class ReportOrigin(Struct, frozen=True):
    """Where facts come from. uri: of the report's manifest. created: the time of the facts, in ISO 8601 in UTC.
    refused: one sentence on each newer report that was refused.
    """

    uri: str
    created: str
    refused: tuple[str, ...] = ()


def unseen_words(origin: ReportOrigin, unreported: int) -> list[str]:
    """Return phrases on what an audit that used the report did not look at, for the summary. unreported: the number of
    objects whose stored ACL the report does not tell (Tally.unreported).
    """
    words = [f"changes since {origin.created} of what the S3 Inventory report {visible(origin.uri)} says of an object"]
    if unreported:
        words.append(
            f"hidden grants of {counted(unreported, 'object')} whose ACL the report does not have as they are listed"
        )
    if origin.refused:
        newer = counted(len(origin.refused), "newer S3 Inventory report")
        words.append(f"{newer}, refused: {visible(origin.refused[0])}")
    return words
