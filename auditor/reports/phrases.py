"""Say audiences, grantees, times and sizes in words."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime
from typing import Final

from msgspec.structs import replace

from auditor.errors import UsageError
from auditor.model.access import Audience, AudienceKind
from auditor.model.object import ALL_USERS, AUTHENTICATED_USERS, LOG_DELIVERY
from auditor.runs.paths import parse_run_id

_LONG_ID: Final = 24
_GROUPS: Final = {
    ALL_USERS: "anyone on the internet (AllUsers)",
    AUTHENTICATED_USERS: "any AWS account (AuthenticatedUsers)",
    LOG_DELIVERY: "S3's log delivery",
}
AUDIENCES: Final = {
    AudienceKind.ANYONE: "anyone on the internet",
    AudienceKind.ANY_ACCOUNT: "any AWS account",
    AudienceKind.ACCOUNT: "account {}",
    AudienceKind.CANONICAL_ID: "unknown account {}",
    AudienceKind.ORGANIZATION: "organization {}",
    AudienceKind.NETWORK: "network {}",
    AudienceKind.VPC: "VPC {}",
    AudienceKind.VPC_ENDPOINT: "VPC endpoint {}",
    AudienceKind.VPC_ACCOUNT: "account {}, by its VPC endpoints",
    AudienceKind.VPC_ORGANIZATION: "organization {}, by its VPC endpoints",
    AudienceKind.SERVICE: "the service {}",
    AudienceKind.SOURCE: "the source {}",
    AudienceKind.ACCESS_POINT: "access point {}",
    AudienceKind.ACCESS_GRANTS: "grantees of the S3 Access Grants instance {}",
    AudienceKind.IDENTITY_PROVIDER: "the identity provider {}",
    AudienceKind.GROUP: "the group {}",
    AudienceKind.DIRECTORY_USER: "directory user {}",
    AudienceKind.DIRECTORY_GROUP: "directory group {}",
}
"""The words of each kind. `{}` stands for the name."""


def short_id(text: str) -> str:
    """Return a long ID, such as a canonical ID, by its first and last characters; another text as it is."""
    return f"{text[:12]}…{text[-6:]}" if len(text) > _LONG_ID and text.isalnum() else text


def grantee(text: str | None) -> str:
    """Return a grantee in words: a group by its meaning, a canonical ID shortened."""
    if text is None:
        return ""
    if text in _GROUPS:
        return _GROUPS[text]
    return f"unknown account {short_id(text)}" if short_id(text) != text else text


def audience(text: str | None) -> str:
    """Return an audience in words. text: in the form of Audience.text; "others" and other texts are returned as is."""
    if not text:
        return ""
    try:
        found = Audience.parse(text)
    except ValueError:
        return text
    return words_of(
        replace(found, name=short_id(found.name or "")) if found.kind is AudienceKind.CANONICAL_ID else found
    )


def words_of(found: Audience) -> str:
    """Return an audience in words, its name as a whole."""
    words = _GROUPS.get(found.name or "") or AUDIENCES[found.kind].format(found.name or "").rstrip()
    return words if found.through is None else f"{words}, through {found.through}"


def began(run: str) -> datetime | None:
    """Return when a run began, by its ID; None if the text is no run ID."""
    try:
        return parse_run_id(run)
    except UsageError:
        return None


def long_date(moment: datetime) -> str:
    return f"{moment:%A} {moment.day} {moment:%B %Y, %H:%M} UTC"


def short_date(text: str | None) -> str:
    """Return the day of an ISO 8601 time: "12 November 2026"; the text itself if it is no time, "" for None."""
    if not text:
        return ""
    try:
        moment = datetime.fromisoformat(text)
        moment = moment.astimezone(UTC) if moment.tzinfo else moment
    except ValueError:
        return text
    return f"{moment.day} {moment:%B %Y}"


def duration(seconds: float) -> str:
    """Return a duration: "17 min 31 s", "2 h 5 min", "9.4 s"."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def size(number: float) -> str:
    """Return a number of bytes with a unit: "1.9 TB"."""
    amount = number
    for unit in ("bytes", "kB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "bytes" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:,.1f} TB"


def read_words(number: int, seconds: float) -> list[str]:
    """Return the words for a number of bytes that were read, and for their rate; [] if none was."""
    return [f"{size(number)} read at {size(number / seconds)}/s"] if number and seconds > 0 else []


def shell_line(*words: str) -> str:
    """Return the words as a command for a shell, safe to print: bash, zsh and ksh read the escapes of unprintable
    characters.
    """
    return " ".join(shlex.quote(word) if word.isprintable() else f"$'{''.join(map(_quoted, word))}'" for word in words)


def _quoted(character: str) -> str:
    if character.isprintable() and character not in "\\'":
        return character
    return "".join(f"\\x{byte:02x}" for byte in character.encode(errors="surrogateescape"))
