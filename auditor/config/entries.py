"""Check the entries of auditor.toml: [[accounts]], the names of accounts, networks and other parties; [[exceptions]],
the findings, objects and holes that the owner of a bucket accepts, and until when.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Final

from msgspec import Meta, Struct, ValidationError, convert
from msgspec.structs import replace

from auditor.config.toml_tables import entry_label
from auditor.errors import ConfigError
from auditor.model.access import Audience, AudienceKind
from auditor.model.exception import OPEN, ExceptionEntry
from auditor.model.object import ALL_USERS, AUTHENTICATED_USERS
from auditor.model.toml_forms import Text
from auditor.model.trusted_entry import check_entry

ACCOUNTS: Final = "accounts"
_Name = Annotated[str, Meta(pattern=r"\S", max_length=200)]

LONGEST_DAYS: Final = 400
"""Number of days for which an exception may hold: a year, and time to renew it."""
EXCEPTIONS: Final = "exceptions"

_GROUPS: Final = {"AllUsers": ALL_USERS, "AuthenticatedUsers": AUTHENTICATED_USERS}


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


def checked_exceptions(entries: Sequence[ExceptionEntry], name: str, today: date | None) -> tuple[ExceptionEntry, ...]:
    """Return the entries with the URIs of groups that they name in short; named_rules() finds the rules that they
    name. name: name of the file, for messages. today: None for the present day in UTC. Raises ConfigError.
    """
    found = tuple(replace(one, grantee=_GROUPS.get(one.grantee or "", one.grantee)) for one in entries)
    seen: dict[str, int] = {}
    for number, entry in enumerate(found, 1):
        here = entry_label(name, EXCEPTIONS, number, len(found))
        _check_keys(entry, here)
        if entry.audience is not None:
            _check_audience(entry.audience, here)
        check_day(entry.until, here, today)
        if (first := seen.setdefault(entry.name, number)) != number:
            raise ConfigError(
                f"{here} has the id {entry.name!r} of number {first}: remove one of them, or give each an id of its own"
            )
    return found


def _check_keys(entry: ExceptionEntry, here: str) -> None:
    """Raise ConfigError if an entry has keys that cannot be combined, or lacks a key that another one needs, or has a
    verdict that it may not cover.
    """
    if entry.hole and entry.verdict:
        raise ConfigError(f"{here}: verdict conflicts with action or code, which name a hole: write two entries")
    if entry.hole and (entry.audience or entry.grantee):
        wrong = "audience" if entry.audience else "grantee"
        raise ConfigError(f"{here}: {wrong} conflicts with action or code, which name a hole: remove it")
    if not entry.hole and (entry.rule is None) == (entry.verdict is None):
        raise ConfigError(f"{here}: name either a rule or a verdict, or the action or code of a hole")
    if entry.grantee and entry.verdict:
        raise ConfigError(f"{here}: grantee needs a rule: name the audience of the verdict")
    if entry.prefix and entry.pattern:
        raise ConfigError(f'{here}: prefix and pattern cannot be combined: write pattern = "PREFIX*" for a prefix')
    if entry.verdict and entry.verdict not in OPEN:
        raise ConfigError(f"{here}: verdict is {entry.verdict.value!r}: use {', '.join(OPEN)}")


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


def check_day(text: str, here: str, today: date | None = None) -> None:
    """Raise ConfigError unless the text is a day, YYYY-MM-DD, at most LONGEST_DAYS ahead. here: the entry, for
    messages. today: None for the present day in UTC.
    """
    try:
        day = convert(text, date)
    except ValidationError:
        raise ConfigError(f"{here}: until is {text[:100]!r}: write a day, such as until = 2027-01-31") from None
    latest = (today or datetime.now(UTC).date()) + timedelta(LONGEST_DAYS)
    if day > latest:
        raise ConfigError(
            f"{here}: until is {text}, more than {LONGEST_DAYS} days ahead: write {latest.isoformat()} or earlier"
        )
