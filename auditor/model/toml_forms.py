"""The forms of values in TOML files. config/toml_tables.py reads them, and says what to write for a wrong one."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta


def form(fix: str, pattern: str | None = None, *, quote: bool = False, **limits: Any) -> Meta:
    """Return the form of a value, to stand beside its type. fix: the clause that says what to write. pattern: of the
    whole text. quote: True if a message may quote a wrong value. limits: as those of Meta, such as min_length.
    """
    return Meta(pattern=pattern and rf"^(?:{pattern})\Z", extra={"fix": fix, "quote": quote}, **limits)


Text = Annotated[str, Meta(pattern=r"\S", max_length=2048)]
"""A text that is not empty, and at most twice as long as a key."""
Owner = Annotated[Text, form("name the person or team responsible for it")]
"""The person or team that answers for an entry."""
Day = Annotated[Text, form("give the last day on which it holds, such as until = 2027-01-31")]
"""The last day, in UTC, on which an entry holds: YYYY-MM-DD."""
MetadataName = Annotated[
    str, form("write metadata names, without spaces and without x-amz-meta-", r"(?!(?i:x-amz-meta-))\S+")
]
"""The name of an entry of user metadata."""
