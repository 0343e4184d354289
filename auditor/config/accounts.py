"""Read [[accounts]] of auditor.toml: the names of accounts, networks and other parties."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from auditor.errors import ConfigError
from auditor.model.trusted_entry import check_entry

ACCOUNTS: Final = "accounts"
_KEYS: Final = ("id", "name", "team")
_MOST: Final = 100_000
_LONGEST: Final = 200
"""Largest number of characters of a name or a team."""


class NamedAccount(Struct, frozen=True):
    """The name of an account, a network or another party. id: the party as a report names it: a canonical ID, an
    account's 12 digits, an ARN, an organization, a network, a VPC. team: the team that answers for the party; None if
    none is given.
    """

    id: str
    name: str
    team: str | None = None

    @property
    def text(self) -> str:
        """The name, with the team."""
        return self.name if self.team is None else f"{self.name} (team {self.team})"


def read_accounts(entries: Any, name: str) -> tuple[NamedAccount, ...]:
    """Read the table `accounts`. name: name of the file, for messages. Raises ConfigError."""
    if not isinstance(entries, list):
        raise ConfigError(f"{name}: {ACCOUNTS} is not an array of tables: write [[{ACCOUNTS}]]")
    if len(entries) > _MOST:
        raise ConfigError(f"{name}: [[{ACCOUNTS}]] has {len(entries):,} entries: {_MOST:,} at most")
    found: dict[str, NamedAccount] = {}
    for number, entry in enumerate(entries, 1):
        here = f"{name}: [[{ACCOUNTS}]] {number}" if entries[1:] else f"{name}: [[{ACCOUNTS}]]"
        account = _account(entry, here)
        if account.id in found:
            raise ConfigError(f"{here}: {account.id[:100]!r} has a name already: remove one of them")
        found[account.id] = account
    return tuple(found.values())


def _account(entry: Any, here: str) -> NamedAccount:
    if not isinstance(entry, dict):
        raise ConfigError(f"{here} is not a table")
    if unknown := sorted(entry.keys() - set(_KEYS)):
        raise ConfigError(f"{here}: the key {unknown[0]!r} is unknown: use {', '.join(_KEYS)}")
    for key in ("id", "name"):
        if key not in entry:
            raise ConfigError(f'{here}: the {key} is missing: write {key} = ".."')
    for key, value in entry.items():
        if not isinstance(value, str) or not value.strip():
            raise ConfigError(f'{here}: {key} is not a text that is not empty: write {key} = ".."')
        if key != "id" and len(value) > _LONGEST:
            raise ConfigError(f"{here}: {key} has more than {_LONGEST} characters: shorten it")
    try:
        check_entry(entry["id"])
    except ValueError as error:
        raise ConfigError(f"{here}: id is {entry['id'][:100]!r}: {error}") from error
    return NamedAccount(**entry)
