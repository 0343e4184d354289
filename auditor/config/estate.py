"""Read the file of an estate: its name, its accounts, the roles to assume, and what is left out, by whom and why."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from auditor.config.exceptions import LONGEST_DAYS, check_day, entry_text
from auditor.errors import ConfigError
from auditor.model.estate import EstateAccount, Exclusion, Restriction

_MOST: Final = 10_000
"""Largest number of accounts, of exclusions, and of patterns."""
_NAME: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}")
"""The form of an estate's name, which names a folder."""
_TEXTS: Final = ("id", "name", "role", "external_id")
_WHY: Final = {
    "reason": "say why",
    "owner": "name the person or team that answers for it",
    "until": "give the last day on which it holds, such as until = 2027-01-31",
}
_ACCOUNT: Final = frozenset({*_TEXTS, "own_credentials", "include", "regions", "exclude", *_WHY})
_EXCLUSION: Final = frozenset({"pattern", *_WHY})
_ID: Final = re.compile(r"[0-9]{12}")
_ROLE: Final = re.compile(r"arn:aws[a-z-]*:iam::([0-9]{12}):role/[\x21-\x7e]{1,576}")
"""An ARN of a role, with its path (IAM User Guide, "IAM identifiers")."""
_EXTERNAL_ID: Final = re.compile(r"[A-Za-z0-9_+=,.@:/-]{2,1224}")
"""The form of an external ID (STS API: AssumeRole)."""
_PATTERN: Final = re.compile(r"[A-Za-z0-9._*?-]{1,255}")
_REGION: Final = re.compile(r"[a-z]{2,}(-[a-z]+)+-[0-9]+")


class EstateFile(Struct, frozen=True):
    """The content of a file. name: of the estate, and of its folder beside the run folders. accounts: each with the
    exclusions that hold in it.
    """

    name: str
    accounts: tuple[EstateAccount, ...]


def read_estate(path: str, today: date | None = None) -> EstateFile:
    """Read the file of an estate. today: None for the present day in UTC. Raises ConfigError: one clear sentence."""
    try:
        with Path(path).open("rb") as file:
            import tomllib  # most commands have no file

            document = tomllib.load(file)
    except FileNotFoundError:
        raise ConfigError(f"there is no file {path!r}: fix --estate") from None
    except (ValueError, RecursionError) as error:  # not TOML, not UTF-8, a path with a zero byte, nested too deep
        raise ConfigError(f"{path} is not TOML: {error}") from error
    except OSError as error:
        raise ConfigError(f"{path} cannot be read ({error.strerror}): fix --estate") from error
    return estate_of(document, path, today)


def estate_of(document: Mapping[str, Any], name: str, today: date | None = None) -> EstateFile:
    """Return the content of a parsed file. name: path of the file, for messages. Raises ConfigError."""
    if unknown := sorted(document.keys() - {"accounts", "exclude", "name"}):
        raise ConfigError(f"{name}: the key {unknown[0]!r} is unknown: use name, accounts, exclude")
    latest = (today or datetime.now(UTC).date()) + timedelta(LONGEST_DAYS)
    entries = _tables(document.get("accounts", []), f"{name}: accounts", "[[accounts]]")
    if not entries:
        raise ConfigError(f'{name}: no account is named: write [[accounts]] with role = "arn:aws:iam::..:role/.."')
    everywhere = _exclusions(document.get("exclude", []), f"{name}: exclude", "[[exclude]]", latest)
    found: dict[str | None, EstateAccount] = {}
    for number, entry in enumerate(entries, 1):
        here = f"{name}: [[accounts]] {number}"
        account = _account(entry, here, latest)
        if account.id in found:
            raise ConfigError(f"{here}: account {account.id} is named twice: remove one of them")
        found[account.id] = replace(account, exclusions=(*account.exclusions, *everywhere))
    return EstateFile(_name(document, name), tuple(found.values()))


def _name(document: Mapping[str, Any], path: str) -> str:
    """Return the name of the estate: the one in the file, or else that of the file."""
    if "name" in document:
        given = document["name"]
        if not isinstance(given, str) or not _NAME.fullmatch(given):
            raise ConfigError(
                f"{path}: name is {str(given)[:100]!r}: write at most 100 letters, digits, dots, `_` and `-`"
            )
        return given
    stem = Path(path).stem
    if _NAME.fullmatch(stem):
        return stem
    digest = hashlib.sha256(stem.encode(errors="surrogateescape")).hexdigest()  # two such names stay two
    return f"{re.sub('[^A-Za-z0-9_-]+', '-', stem)[:80]}-{digest[:8]}"


def _tables(value: Any, here: str, form: str) -> list[dict[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        raise ConfigError(f"{here} is not an array of tables: write {form}")
    if len(value) > _MOST:
        raise ConfigError(f"{here} has {len(value):,} entries: {_MOST:,} at most")
    return value


def _account(entry: dict[str, Any], here: str, latest: date) -> EstateAccount:
    _refuse_unknown(entry, _ACCOUNT, here)
    texts: dict[str, str] = {key: entry_text(key, entry[key], here) for key in _TEXTS if key in entry}
    own = entry.get("own_credentials", False)
    if not isinstance(own, bool):
        raise ConfigError(f"{here}: own_credentials is not true or false")
    if own == ("role" in texts):
        raise ConfigError(
            f"{here}: name either the role to assume, or say own_credentials = true for the account of the own ones"
        )
    exclusions = _exclusions(entry.get("exclude", []), f"{here}: exclude", "[[accounts.exclude]]", latest)
    return EstateAccount(
        id=_checked_id(texts, here),
        name=texts.get("name", ""),
        role=texts.get("role"),
        external_id=_external_id(texts, here),
        restriction=_restriction(entry, here, latest),
        exclusions=exclusions,
    )


def _checked_id(texts: Mapping[str, str], here: str) -> str:
    """Return the account's number, which the role names or, without a role, the entry."""
    given = texts.get("id")
    if given is not None and not _ID.fullmatch(given):
        raise ConfigError(f"{here}: id is {given[:100]!r}: write the account's 12 digits as a text")
    if "role" not in texts:
        if given is None:
            raise ConfigError(f'{here}: the id is missing: write id = ".." with the 12 digits of the own account')
        return given
    match = _ROLE.fullmatch(texts["role"])
    if match is None:
        raise ConfigError(f"{here}: role is {texts['role'][:100]!r}: write it like arn:aws:iam::111122223333:role/NAME")
    if given not in (None, match[1]):
        raise ConfigError(f"{here}: id is {given}, and the role is one of account {match[1]}: remove the id")
    return match[1]


def _external_id(texts: Mapping[str, str], here: str) -> str | None:
    found = texts.get("external_id")
    if found is not None and "role" not in texts:
        raise ConfigError(f"{here}: external_id goes with a role: remove it")
    if found is not None and not _EXTERNAL_ID.fullmatch(found):
        raise ConfigError(f"{here}: external_id has characters that STS does not take, or fewer than 2")
    return found


def _restriction(entry: dict[str, Any], here: str, latest: date) -> Restriction | None:
    include = _words(entry.get("include", []), "include", _PATTERN, "patterns of bucket names", here)
    regions = _words(entry.get("regions", []), "regions", _REGION, "regions, such as eu-central-1", here)
    if include or regions:
        return Restriction(include=include, regions=regions, **_why(entry, here, latest))
    if stray := sorted(entry.keys() & set(_WHY)):
        raise ConfigError(f"{here}: {stray[0]} goes with include or regions: remove it, or write [[accounts.exclude]]")
    return None


def _words(value: Any, key: str, form: re.Pattern[str], noun: str, here: str) -> tuple[str, ...]:
    if not isinstance(value, list) or len(value) > _MOST:
        raise ConfigError(f"{here}: {key} is not a list of {noun}")
    for one in value:
        if not isinstance(one, str) or not form.fullmatch(one):
            raise ConfigError(f"{here}: {key} has {str(one)[:100]!r}: write {noun}")
    return tuple(value)


def _exclusions(value: Any, here: str, form: str, latest: date) -> tuple[Exclusion, ...]:
    found = []
    for number, entry in enumerate(_tables(value, here, form), 1):
        place = f"{here} {number}"
        _refuse_unknown(entry, _EXCLUSION, place)
        if "pattern" not in entry:
            raise ConfigError(f'{place}: the pattern is missing: write pattern = ".." with a name, or with `*` in it')
        pattern = entry_text("pattern", entry["pattern"], place)
        if not _PATTERN.fullmatch(pattern):
            raise ConfigError(f"{place}: pattern is {pattern[:100]!r}: write a bucket's name, with `*` or `?` in it")
        found.append(Exclusion(pattern=pattern, **_why(entry, place, latest)))
    return tuple(found)


def _why(entry: dict[str, Any], here: str, latest: date) -> dict[str, str]:
    """Return the reason, the owner and the last day of an entry that leaves out buckets."""
    for key, fix in _WHY.items():
        if key not in entry:
            raise ConfigError(f"{here}: the {key} is missing, and buckets are left out: {fix}")
    found = {key: entry_text(key, entry[key], here) for key in _WHY}
    check_day(found["until"], here, latest)
    return found


def _refuse_unknown(entry: dict[str, Any], known: frozenset[str], here: str) -> None:
    if unknown := sorted(entry.keys() - known):
        raise ConfigError(f"{here}: the key {unknown[0][:100]!r} is unknown: use {', '.join(sorted(known))}")
