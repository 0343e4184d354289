"""Who does not count as someone else: the bucket's owner, its account, and whom the configuration trusts."""

from __future__ import annotations

from typing import Final, NamedTuple

from auditor.model.bucket import BucketFacts
from auditor.model.policy import EVERYONE


class Audience(NamedTuple):
    """Whom a principal stands for, apart from insiders."""

    everyone: bool = False
    others: bool = False
    undecided: bool = False


NOBODY: Final = Audience()
OTHERS: Final = Audience(others=True)
UNDECIDED: Final = Audience(undecided=True)


class Principals:
    """owner: canonical ID, account: 12 digits, each None where it is not known.

    trusted: canonical IDs, account numbers, or principals word for word as a policy names them.
    """

    def __init__(self, facts: BucketFacts, trusted: frozenset[str]) -> None:
        self.owner = facts.owner if isinstance(facts.owner, str) and facts.owner else None
        self.trusted = trusted
        # The account is the caller's: it is the owner's only where the caller is known to own the bucket.
        own = self.owner is not None and facts.own_id == self.owner
        self.account = facts.account if own and isinstance(facts.account, str) and _is_account(facts.account) else None

    def audience(self, kind: str, value: str) -> Audience:
        """Whom one principal of a policy lets in; kind: AWS, CanonicalUser, Service or Federated."""
        if (kind, value) == EVERYONE:
            return Audience(everyone=True)
        if value in self.trusted:
            return NOBODY
        if kind in ("Service", "Federated"):
            return OTHERS
        if "*" in value or "?" in value:
            return UNDECIDED  # S3 takes no such principal; what another server makes of it is not known
        return self._compare(value, self.owner) if kind == "CanonicalUser" else self._of_account(value)

    def _of_account(self, value: str) -> Audience:
        """An account number, or an ARN of IAM or STS; a unique id ("AIDA...") does not tell its account."""
        if _is_account(value):
            return self._compare(value, self.account)
        parts = value.split(":", 5)
        if len(parts) < 6 or parts[0] != "arn" or parts[2] not in ("iam", "sts"):
            return UNDECIDED
        account, name = parts[4:]
        if _is_account(account):
            return self._compare(account, self.account)
        # Ceph's users stand there under their names; the canonical ID of such a user is USER, or TENANT$USER.
        user = name.removeprefix("user/")
        return self._compare(f"{account}${user}" if account else user, self.owner)

    def _compare(self, value: str, own: str | None) -> Audience:
        if value in self.trusted or value == own:
            return NOBODY
        return UNDECIDED if own is None else OTHERS


def _is_account(text: str) -> bool:
    return len(text) == 12 and text.isascii() and text.isdigit()
