"""Decide for each principal of a policy if it is an insider (the owner, the owner's account, a trusted one) or not."""

from __future__ import annotations

from typing import Final, NamedTuple

from auditor.model.bucket import BucketFacts
from auditor.model.policy import EVERYONE


class Audience(NamedTuple):
    """The outsiders that a policy's principal stands for. everyone: anybody. others: other accounts or services.
    undecided: possibly somebody outside. If all three are False, the principal is an insider.
    """

    everyone: bool = False
    others: bool = False
    undecided: bool = False


NOBODY: Final = Audience()
OTHERS: Final = Audience(others=True)
UNDECIDED: Final = Audience(undecided=True)


class Principals:
    """The insiders of one bucket: its owner's canonical ID, the owner's 12-digit account, and the trusted principals.

    owner, account: None if unknown. trusted: canonical IDs, account numbers, or principals as a policy writes them.
    """

    def __init__(self, facts: BucketFacts, trusted: frozenset[str]) -> None:
        self.owner = facts.owner if isinstance(facts.owner, str) and facts.owner else None
        self.trusted = trusted
        # facts.account is the caller's account. It is the owner's only if the caller owns the bucket.
        own = self.owner is not None and facts.own_id == self.owner
        self.account = facts.account if own and isinstance(facts.account, str) and _is_account(facts.account) else None

    def audience(self, kind: str, value: str) -> Audience:
        """Return the outsiders that a policy's principal stands for. kind: AWS, CanonicalUser, Service or Federated."""
        if (kind, value) == EVERYONE:
            return Audience(everyone=True)
        if value in self.trusted:
            return NOBODY
        if kind in ("Service", "Federated"):
            return OTHERS
        if "*" in value or "?" in value:
            return UNDECIDED  # S3 refuses such a principal; another server may accept it
        return self._compare(value, self.owner) if kind == "CanonicalUser" else self._of_account(value)

    def _of_account(self, value: str) -> Audience:
        """Return the audience of an AWS principal: an account number, or an ARN of IAM or STS. Any other text is
        undecided, such as a user's unique ID ("AIDA..."), because it names no account.
        """
        if _is_account(value):
            return self._compare(value, self.account)
        parts = value.split(":", 5)
        if len(parts) < 6 or parts[0] != "arn" or parts[2] not in ("iam", "sts"):
            return UNDECIDED
        account, name = parts[4:]
        if _is_account(account):
            return self._compare(account, self.account)
        # Ceph writes a user's name here; the canonical ID of such a user is USER, or TENANT$USER.
        user = name.removeprefix("user/")
        return self._compare(f"{account}${user}" if account else user, self.owner)

    def _compare(self, value: str, own: str | None) -> Audience:
        if value in self.trusted or value == own:
            return NOBODY
        return UNDECIDED if own is None else OTHERS


def _is_account(text: str) -> bool:
    return len(text) == 12 and text.isascii() and text.isdigit()
