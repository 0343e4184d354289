"""An estate: accounts whose buckets are audited together, and the outcome of each bucket."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Annotated, Any, Final

from msgspec import Struct

from auditor.model.exception import ExceptionState
from auditor.model.json_codec import document
from auditor.model.summary import Coverage
from auditor.model.toml_forms import Day, Owner, Text, form

_Reason = Annotated[Text, form("say why its buckets are left out")]
_PATTERN: Final = "[A-Za-z0-9._*?-]{1,255}"
BucketPattern = Annotated[str, form("write a bucket's name or a pattern with `*` or `?`", _PATTERN, quote=True)]


class Exclusion(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The decision of an owner not to audit some buckets. until: the last day, in UTC, on which it holds: YYYY-MM-DD.

    pattern: of bucket names; `*` stands for any characters, `?` for one.
    """

    pattern: BucketPattern
    reason: _Reason
    owner: Owner
    until: Day

    def matches(self, bucket: str) -> bool:
        return any_matches((self.pattern,), bucket)


class Restriction(Struct, frozen=True, kw_only=True):
    """The decision of an owner to audit only some buckets of an account. It excludes all others until its last day.

    include: patterns of bucket names; () for every name. regions: (): every region. until: as in Exclusion.
    """

    include: tuple[str, ...] = ()
    regions: tuple[str, ...] = ()
    reason: _Reason
    owner: Owner
    until: Day


class EstateAccount(Struct, frozen=True, kw_only=True):
    """An account of an estate. id: its 12 digits; None for the account of the own credentials before it is asked for.

    role: ARN of the role to assume; None for the own credentials. external_id: for the role; None for none.
    """

    id: str | None
    name: str = ""
    role: str | None = None
    external_id: str | None = None
    restriction: Restriction | None = None
    exclusions: tuple[Exclusion, ...] = ()

    @property
    def words(self) -> str:
        """The account in words, with its name."""
        return account_words(self.id, self.name)


OWN_ACCOUNT: Final = EstateAccount(id=None)
"""The only account of an estate without a file: that of the own credentials, with every bucket."""


def account_words(number: str | None, name: str) -> str:
    """Return words for an account. number: None for that of the own credentials. name: "" for none."""
    found = f"account {number}" if number else "the account of the auditor's own credentials"
    return f"{found} ({name})" if name else found


def any_matches(patterns: tuple[str, ...], bucket: str) -> bool:
    """True if one of the patterns matches the whole name of the bucket."""
    return any(fnmatchcase(bucket, pattern) for pattern in patterns)


class BucketOutcome(StrEnum):
    """The outcome of one bucket of an estate."""

    AUDITED = "audited"
    """Its run is complete: each listed object has an outcome."""
    EXCLUDED = "excluded"
    """It was left out by name, for a reason that is given."""
    HOLE = "hole"
    """It was to be audited, and was not, or not to its end."""


class BucketResult(Struct, frozen=True, kw_only=True):
    """One bucket of an estate. account: None if it is not known. region: as the listing names it; None if it does not.

    run: ID of its run; None if none was begun. exit_code: of the run; None for an excluded bucket. sentence: the
    verdict of the run, the reason of the exclusion, or why the bucket is a hole. unfinished: True if its audit was not
    begun, or did not reach its end, so that the same start can continue it.
    """

    bucket: str
    account: str | None
    region: str | None = None
    outcome: BucketOutcome
    run: str | None = None
    exit_code: int | None = None
    sentence: str
    unfinished: bool = False


class BucketCounts(Struct, frozen=True, kw_only=True):
    """Numbers of buckets: buckets = audited + excluded + holes, always."""

    buckets: int
    audited: int
    excluded: int
    holes: int


class AccountResult(Struct, frozen=True, kw_only=True):
    """One account of an estate. hole: why its buckets are not all known; None if their listing reached its end.

    counts: the numbers of its buckets. For an account that is a hole, these are the buckets that are known all the
    same, from the pages that were read and from the last estate.json.
    """

    account: str | None
    name: str
    role: str | None
    hole: str | None
    counts: BucketCounts

    @property
    def words(self) -> str:
        """The account in words, with its name."""
        return account_words(self.account, self.name)


class ExclusionUse(Struct, frozen=True, kw_only=True):
    """An exclusion or a restriction in a report. account: None if it holds in several accounts. decision: the entry in
    words. matched: number of buckets that it excluded; for an expired one, that it would have excluded.
    """

    account: str | None
    decision: str
    reason: str
    owner: str
    until: str
    state: ExceptionState
    matched: int


class EstateReport(Struct, frozen=True, kw_only=True):
    """The whole content of estate.json."""

    estate: str
    """ID of the start, in the form of a run ID. The runs of its buckets have the same time in theirs."""
    out: str
    """URI of the place that has the run folders."""
    folder: str
    """The folder of this estate in `out`, with its index page and this file: `estate=NAME`, after the estate's file, or
    `account=NUMBER` for every bucket of one account."""
    since: str | None
    """ID of the start before, with which the notes compare; None if there is none."""
    complete: bool
    """True if there is no hole: a bucket is visible, each account is listed, and each bucket audited or excluded."""
    stopped: str | None
    """Why the start ended before its end; None if it did not."""
    exit_code: int
    line: str
    """One sentence that adds up the buckets."""
    counts: BucketCounts
    accounts: tuple[AccountResult, ...]
    exclusions: tuple[ExclusionUse, ...]
    coverage: Coverage
    """The sums over the runs of the audited buckets, and of those that did not reach their end."""
    verdicts: Mapping[str, int]
    findings: Mapping[str, int]
    notes: tuple[str, ...]
    """Sentences on exclusions that have expired or match nothing, and on buckets that are new or gone since the last
    estate.json."""
    not_looked_at: tuple[str, ...]
    seconds: float
    buckets: tuple[BucketResult, ...]
    """Every bucket, by account and name."""

    def to_dict(self) -> dict[str, Any]:
        """Return the report as the JSON value of estate.json."""
        return document(self)


class EarlierEstate(Struct, frozen=True, kw_only=True):
    """The part of an estate.json that is read again: by the next start, and for the index page."""

    estate: str
    line: str
    notes: tuple[str, ...]
    accounts: tuple[AccountResult, ...]
    buckets: tuple[BucketResult, ...]
    not_looked_at: tuple[str, ...]
    folder: str
    since: str | None

    @property
    def numbers(self) -> frozenset[str | None]:
        """The numbers of its accounts."""
        return frozenset(one.account for one in self.accounts)
