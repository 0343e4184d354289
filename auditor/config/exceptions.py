"""Read [[exceptions]] of auditor.toml: the findings, objects and holes that the owner of a bucket accepts, and until
when.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

from auditor.errors import ConfigError
from auditor.model.access import Audience, AudienceKind, Verdict
from auditor.model.exception import ExceptionEntry
from auditor.model.object import ALL_USERS, AUTHENTICATED_USERS
from auditor.model.target import BUCKET_NAME

LONGEST_DAYS: Final = 400
"""Number of days for which an exception may hold: a year, and time to renew it."""
EXCEPTIONS: Final = "exceptions"

_MOST: Final = 10_000
"""Largest number of entries."""
_LONGEST: Final = 2048
"""Largest number of characters of a value: twice that of a key."""
_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_GROUPS: Final = {"AllUsers": ALL_USERS, "AuthenticatedUsers": AUTHENTICATED_USERS}
_REQUIRED: Final = {
    "reason": "say why it is accepted",
    "owner": "name the person or team that answers for it",
    "until": "give the last day on which it holds, such as until = 2027-01-31",
}
_KEYS: Final = frozenset(
    {"id", "bucket", "prefix", "pattern", "rule", "action", "code", "verdict", "grantee", "audience", *_REQUIRED}
)
_OPEN: Final = (Verdict.EXPOSED, Verdict.SHARED, Verdict.MASKED)
"""The verdicts that an exception may cover. Nobody gets in at private and dormant, which need no exception, and
unknown is a hole."""


def read_exceptions(entries: Any, name: str, today: date | None = None) -> tuple[ExceptionEntry, ...]:
    """Read the table `exceptions`; check_rules() checks the rules that it names. name: name of the file, for messages.
    today: None for the present day in UTC. Raises ConfigError.
    """
    found = _read(entries, name, today)
    seen: dict[str, int] = {}
    for number, entry in enumerate(found, 1):
        if (first := seen.setdefault(entry.name, number)) != number:
            raise ConfigError(
                f"{name}: [[{EXCEPTIONS}]] {number} has the id {entry.name!r} of number {first}: remove one of them, or"
                " give each an id of its own"
            )
    return found


def _read(entries: Any, name: str, today: date | None) -> tuple[ExceptionEntry, ...]:
    if not isinstance(entries, list):
        raise ConfigError(f"{name}: {EXCEPTIONS} is not an array of tables: write [[{EXCEPTIONS}]]")
    total = len(entries)
    if total > _MOST:
        label = f"{name}: [[{EXCEPTIONS}]]"
        raise ConfigError(f"{label} has {total:,} entries: use prefixes or patterns, {_MOST:,} at most")
    latest = (today or datetime.now(UTC).date()) + timedelta(LONGEST_DAYS)
    return tuple(_entry(entry, entry_label(name, number, total), latest) for number, entry in enumerate(entries, 1))


def entry_label(name: str, number: int, total: int) -> str:
    """Return how messages name an entry. name: name of the file. number: the entry's number, from 1, of `total`."""
    label = f"{name}: [[{EXCEPTIONS}]]"
    return f"{label} {number}" if total > 1 else label


def _entry(entry: Any, here: str, latest: date) -> ExceptionEntry:
    if not isinstance(entry, dict):
        raise ConfigError(f"{here} is not a table")
    if unknown := sorted(entry.keys() - _KEYS):
        raise ConfigError(f"{here}: the key {unknown[0]!r} is unknown: use {', '.join(sorted(_KEYS))}")
    values = {key: entry_text(key, value, here) for key, value in entry.items()}
    for key, fix in _REQUIRED.items():
        if key not in values:
            raise ConfigError(f"{here}: the {key} is missing: {fix}")
    _check_kind(values, here)
    _check_values(values, here, latest)
    if "verdict" in values:
        values["verdict"] = Verdict(values["verdict"])
    if "grantee" in values:
        values["grantee"] = _GROUPS.get(values["grantee"], values["grantee"])
    return ExceptionEntry(**values)


def entry_text(key: str, value: Any, here: str) -> Any:
    """Return the text of a key, a date as YYYY-MM-DD. here: the entry, for messages. Raises ConfigError."""
    if key == "until" and type(value) is date:
        return value.isoformat()
    if not isinstance(value, str) or not value.strip():
        raise ConfigError(f'{here}: {key} is not a text that is not empty: write {key} = ".."')
    if len(value) > _LONGEST:
        raise ConfigError(f"{here}: {key} has more than {_LONGEST:,} characters: shorten it")
    return value


def _check_kind(values: Mapping[str, Any], here: str) -> None:
    """Raise ConfigError if an entry has keys that exclude each other, or lacks a key that another one needs."""
    hole = "action" in values or "code" in values
    if hole and "verdict" in values:
        raise ConfigError(f"{here}: verdict does not go with action or code, which name a hole: write two entries")
    if hole and (wrong := sorted(values.keys() & {"grantee", "audience"})):
        raise ConfigError(f"{here}: {wrong[0]} does not go with action or code, which name a hole: remove it")
    if not hole and ("rule" in values) == ("verdict" in values):
        raise ConfigError(f"{here}: name either a rule or a verdict, or the action or code of a hole")
    if "grantee" in values and "verdict" in values:
        raise ConfigError(f"{here}: grantee goes with a rule: name the audience of the verdict")
    if "prefix" in values and "pattern" in values:
        raise ConfigError(f'{here}: prefix and pattern exclude each other: write pattern = "PREFIX*" for a prefix')


def _check_values(values: Mapping[str, Any], here: str, latest: date) -> None:
    """Raise ConfigError for a value of the wrong form."""
    verdict = values.get("verdict")
    if verdict is not None and verdict not in _OPEN:
        raise ConfigError(f"{here}: verdict is {verdict!r}: use {', '.join(_OPEN)}")
    if "id" in values and not _ID.fullmatch(values["id"]):
        raise ConfigError(f"{here}: id has other characters than letters, digits, '.', '_' and '-', or more than 64")
    if "bucket" in values and not BUCKET_NAME.fullmatch(values["bucket"]):
        raise ConfigError(f"{here}: bucket is no name of a bucket: write it without s3:// and prefix")
    if "audience" in values:
        _check_audience(values["audience"], here)
    check_day(values["until"], here, latest)


def _check_audience(text: str, here: str) -> None:
    try:
        audience = Audience.parse(text)
    except ValueError:
        kinds = ", ".join(AudienceKind)
        raise ConfigError(
            f'{here}: audience is {text[:100]!r}: write it as the report has it, "anyone" or "account 444455556666";'
            f" its first word is one of {kinds}"
        ) from None
    public = audience.kind in (AudienceKind.ANYONE, AudienceKind.ANY_ACCOUNT)
    if public == (audience.name is not None):
        fix = "remove its name" if public else f"add its name, {audience.kind.value} NAME"
        raise ConfigError(f"{here}: audience is {text[:100]!r}: {fix}")


def check_day(text: str, here: str, latest: date) -> None:
    """Raise ConfigError unless the text is a day, YYYY-MM-DD, and not after `latest`. here: the entry, for messages."""
    try:
        day = date.fromisoformat(text) if _DAY.fullmatch(text) else None
    except ValueError:
        day = None
    if day is None:
        raise ConfigError(f"{here}: until is {text[:100]!r}: write a day, such as until = 2027-01-31")
    if day > latest:
        raise ConfigError(
            f"{here}: until is {text}, more than {LONGEST_DAYS} days ahead: write {latest.isoformat()} or earlier"
        )
