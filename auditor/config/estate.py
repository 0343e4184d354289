"""Read the file of an estate: its name, its accounts, the roles to assume, and what is left out, by whom and why."""

from __future__ import annotations

import hashlib
import re
from datetime import date
from pathlib import Path
from typing import Annotated, Final

from msgspec import Meta, Struct
from msgspec.structs import asdict, replace

from auditor.config.entries import check_day
from auditor.config.toml_tables import entry_label, read_table, read_toml
from auditor.errors import ConfigError
from auditor.model.estate import BucketPattern, EstateAccount, Exclusion, Restriction
from auditor.model.toml_forms import Day, Owner, Text, form

_MOST: Final = Meta(max_length=10_000)
"""Largest number of accounts, of exclusions, and of patterns."""
_NAME: Final = "[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}"
"""The form of an estate's name, which names a folder."""


_ROLE: Final = r"arn:aws[a-z-]*:iam::[0-9]{12}:role/[\x21-\x7e]{1,576}"
"""An ARN of a role, with its path (IAM User Guide, "IAM identifiers")."""
_Role = Annotated[str, form("write it like arn:aws:iam::111122223333:role/NAME", _ROLE, quote=True)]
_EXTERNAL_ID: Final = "[A-Za-z0-9_+=,.@:/-]{2,1224}"
"""The form of an external ID (STS API: AssumeRole)."""
_ExternalId = Annotated[str, form("write 2 or more letters, digits and _+=,.@:/-, which STS takes", _EXTERNAL_ID)]
_Region = Annotated[str, form("write a region, such as eu-central-1", "[a-z]{2,}(-[a-z]+)+-[0-9]+", quote=True)]
_Number = Annotated[str, form("write the account's 12 digits as a string", "[0-9]{12}", quote=True)]
_Name = Annotated[str, form("write at most 100 letters, digits, dots, `_` and `-`", _NAME, quote=True)]
_Exclusions = Annotated[tuple[Exclusion, ...], _MOST]


class _Account(Struct, kw_only=True, forbid_unknown_fields=True):
    """An entry of [[accounts]]."""

    id: _Number | None = None
    name: Text = ""
    role: _Role | None = None
    external_id: _ExternalId | None = None
    own_credentials: bool = False
    include: Annotated[tuple[BucketPattern, ...], _MOST] = ()
    regions: Annotated[tuple[_Region, ...], _MOST] = ()
    exclude: _Exclusions = ()
    reason: Text | None = None
    owner: Owner | None = None
    until: Day | None = None


_FIX: Final = 'write [[accounts]] with role = "arn:aws:iam::..:role/.."'


class _Document(Struct, kw_only=True, forbid_unknown_fields=True):
    """The file of an estate."""

    name: _Name | None = None
    accounts: Annotated[tuple[_Account, ...], form(_FIX, min_length=1, max_length=_MOST.max_length)]
    exclude: _Exclusions = ()


class EstateFile(Struct, frozen=True):
    """The content of a file. name: of the estate, and of its folder beside the run folders. accounts: each with the
    exclusions that hold in it.
    """

    name: str
    accounts: tuple[EstateAccount, ...]


def read_estate(path: str, today: date | None = None) -> EstateFile:
    """Read the file of an estate. today: None for the present day in UTC. Raises ConfigError: one clear sentence."""
    document = read_table(read_toml(path, "--estate"), _Document, path)
    _check_days(document.exclude, path, "exclude", today)
    found: dict[str | None, EstateAccount] = {}
    for number, entry in enumerate(document.accounts, 1):
        here = entry_label(path, "accounts", number, len(document.accounts))
        account = _account(entry, here, today)
        if account.id in found:
            raise ConfigError(f"{here}: account {account.id} is named twice: remove one of them")
        found[account.id] = replace(account, exclusions=(*account.exclusions, *document.exclude))
    return EstateFile(document.name or _name_of(Path(path).stem), tuple(found.values()))


def _name_of(stem: str) -> str:
    """Return the name of an estate whose file does not say it. stem: of the file's name."""
    if re.fullmatch(_NAME, stem):
        return stem
    digest = hashlib.sha256(stem.encode(errors="surrogateescape")).hexdigest()  # two such names stay two
    return f"{re.sub('[^A-Za-z0-9_-]+', '-', stem)[:80]}-{digest[:8]}"


def _check_days(exclusions: tuple[Exclusion, ...], here: str, table: str, today: date | None) -> None:
    """Raise ConfigError for an exclusion whose last day is none, or too far ahead."""
    for number, one in enumerate(exclusions, 1):
        check_day(one.until, entry_label(here, table, number, len(exclusions)), today)


def _account(entry: _Account, here: str, today: date | None) -> EstateAccount:
    if entry.own_credentials == (entry.role is not None):
        raise ConfigError(
            f"{here}: name the role to assume, or say own_credentials = true for the auditor's own account"
        )
    if entry.external_id is not None and entry.role is None:
        raise ConfigError(f"{here}: external_id needs a role: remove it")
    _check_days(entry.exclude, here, "accounts.exclude", today)
    return EstateAccount(
        id=_checked_id(entry, here),
        name=entry.name,
        role=entry.role,
        external_id=entry.external_id,
        restriction=_restriction(entry, here, today),
        exclusions=entry.exclude,
    )


def _checked_id(entry: _Account, here: str) -> str:
    """Return the account's number, which the role names or, without a role, the entry."""
    named = entry.id if entry.role is None else entry.role.split(":")[4]
    if named is None:
        raise ConfigError(f'{here}: the id is missing: write id = ".." with the 12 digits of that account')
    if entry.id not in (None, named):
        raise ConfigError(f"{here}: id is {entry.id}, and the role belongs to account {named}: remove the id")
    return named


def _restriction(entry: _Account, here: str, today: date | None) -> Restriction | None:
    given = {key: value for key, value in asdict(entry).items() if value and key in Restriction.__struct_fields__}
    if entry.include or entry.regions:
        found = read_table(given, Restriction, here)
        check_day(found.until, here, today)
        return found
    if stray := min(given, default=None):
        raise ConfigError(f"{here}: {stray} belongs to include or regions: remove it, or write [[accounts.exclude]]")
    return None
