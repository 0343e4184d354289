"""Check [[accounts]] of auditor.toml: the names of accounts, networks and other parties."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final

from msgspec import Meta, Struct

from auditor.config.toml_tables import entry_label
from auditor.errors import ConfigError
from auditor.model.toml_forms import Text
from auditor.model.trusted_entry import check_entry

ACCOUNTS: Final = "accounts"
_Name = Annotated[str, Meta(pattern=r"\S", max_length=200)]


class NamedAccount(Struct, frozen=True, forbid_unknown_fields=True):
    """The name of an account, a network or another party. id: the party as a report names it: a canonical ID, an
    account's 12 digits, an ARN, an organization, a network, a VPC. team: the team that answers for the party; None if
    none is given.
    """

    id: Text
    name: _Name
    team: _Name | None = None

    @property
    def text(self) -> str:
        """The name, with the team."""
        return self.name if self.team is None else f"{self.name} (team {self.team})"


def check_accounts(accounts: Sequence[NamedAccount], name: str) -> None:
    """Raise ConfigError for an ID of no known form, and for two names of one party. name: of the file, for messages."""
    seen: set[str] = set()
    for number, account in enumerate(accounts, 1):
        here = entry_label(name, ACCOUNTS, number, len(accounts))
        try:
            check_entry(account.id)
        except ValueError as error:
            raise ConfigError(f"{here}: id is {account.id[:100]!r}: {error}") from error
        if account.id in seen:
            raise ConfigError(f"{here}: {account.id[:100]!r} has a name already: remove one of them")
        seen.add(account.id)
