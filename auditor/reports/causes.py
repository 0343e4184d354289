"""Find the causes of changes between two runs: changes of the bucket and of the configuration. Find the objects whose
verdict each cause has moved.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from auditor.model.access import ReasonCode
from auditor.model.bucket import BucketFacts
from auditor.model.run_lines import Seen
from auditor.model.summary import ChangeKind
from auditor.runs.bucket_file import BucketFile

_POLICY: Final = "policy"
_BLOCK: Final = "block"
_OWNERSHIP: Final = "ownership"
_POINTS: Final = "access-points"
_GRANTS: Final = "access-grants"
_KEYS: Final = "key-policies"
_TRUST: Final = "trusted"
_PAYER: Final = "request-payer"
_TAGS: Final = "tags"

WORDS: Final = {
    _POLICY: "the bucket policy changed",
    _BLOCK: "the public access block changed",
    _OWNERSHIP: "the object ownership changed",
    _POINTS: "the access points changed",
    _GRANTS: "the S3 Access Grants changed",
    _KEYS: "policies of KMS keys changed",
    _PAYER: "the payer of requests changed",
    _TAGS: "the bucket's tags, or its ABAC, changed",
    _TRUST: "the setting trusted changed",
    "rules": "the selection or the options of the rules changed",
}
"""The causes in words."""

_CODES: Final = {
    ReasonCode.POLICY_ALLOW: _POLICY,
    ReasonCode.POLICY_DENY: _POLICY,
    ReasonCode.POLICY_UNREAD: _POLICY,
    ReasonCode.NOT_BUCKET_OWNED: _POLICY,
    ReasonCode.KEY_UNKNOWN: _POLICY,
    ReasonCode.TOO_COMPLEX: _POLICY,
    ReasonCode.IGNORE_PUBLIC_ACLS: _BLOCK,
    ReasonCode.RESTRICT_PUBLIC_BUCKETS: _BLOCK,
    ReasonCode.ACLS_DISABLED: _OWNERSHIP,
    ReasonCode.ACCESS_POINT: _POINTS,
    ReasonCode.ACCESS_POINTS_UNREAD: _POINTS,
    ReasonCode.ACCESS_GRANT: _GRANTS,
    ReasonCode.KMS_KEY: _KEYS,
    ReasonCode.KMS_KEY_UNREAD: _KEYS,
    ReasonCode.REQUESTER_PAYS: _PAYER,
    ReasonCode.TRUSTED: _TRUST,
    ReasonCode.BUCKET_TAGS_UNREAD: _TAGS,
}
"""For each reason code about the bucket or the configuration: the cause behind it. Other reason codes are about the
object itself."""

_MOVED: Final = (ChangeKind.NEW, ChangeKind.WORSENED, ChangeKind.IMPROVED, ChangeKind.RESOLVED)


def causes_between(old: BucketFile, new: BucketFile) -> tuple[str, ...]:
    """Return the causes: the changes of the bucket's facts and of the configuration between two runs."""
    settings = _settings(old.configuration, new.configuration, old.selected, new.selected)
    return (*_facts(old.facts, new.facts), *settings)


def _facts(old: BucketFacts, new: BucketFacts) -> Iterator[str]:
    """Yield the causes that are changes of the bucket's facts."""
    facts = {
        _POLICY: ("policy", "policy_is_public"),
        _BLOCK: ("public_access_block", "account_public_access_block"),
        _OWNERSHIP: ("ownership",),
        _POINTS: ("access_points",),
        _GRANTS: ("access_grants",),
        _KEYS: ("key_policies",),
        _PAYER: ("request_payer",),
        _TAGS: ("abac", "tags"),
    }
    for cause, names in facts.items():
        if any(getattr(old, name) != getattr(new, name) for name in names):
            yield cause


def _settings(
    old: Mapping[str, Any], new: Mapping[str, Any], old_rules: Iterable[str], new_rules: Iterable[str]
) -> Iterator[str]:
    """Yield the causes that are changes of the configuration. old_rules, new_rules: IDs of the selected rules."""
    if (old.get("trusted") or []) != (new.get("trusted") or []):
        yield _TRUST
    if set(old_rules) != set(new_rules) or _text(old) != _text(new):
        yield "rules"


def _text(configuration: Mapping[str, Any]) -> str:
    """Return the options of the rules as JSON, as bucket.json has them."""
    return json.dumps(configuration.get("rules") or {}, sort_keys=True, default=str)


def moved_by(causes: Iterable[str], kind: ChangeKind | None, old: Seen | None, new: Seen | None) -> list[str]:
    """Return the causes that moved the verdict of an object. Both runs must have read the object.

    A cause moved the verdict if the cause changed between the runs, and the object's reasons about this cause differ.
    """
    if kind not in _MOVED or old is None or new is None:
        return []
    spoken = {_cause(text) for text in set(old.reasons) ^ set(new.reasons)}
    return [cause for cause in causes if cause in spoken]


def _cause(text: str) -> str | None:
    """Return the cause that a reason is about; None if the reason is about the object itself. text: the reason in the
    form of Reason.text.
    """
    try:
        return _CODES.get(ReasonCode(text.partition(": ")[0]))
    except ValueError:  # of a later release
        return None
