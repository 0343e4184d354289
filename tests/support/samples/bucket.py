"""The facts of an ordinary bucket."""

from __future__ import annotations

from typing import Any, Final

from auditor.model.bucket import BucketFacts, Encryption, PublicAccessBlock
from auditor.model.object import Acl, Grant, Skipped

OWNER: Final = "a0" * 32
CLOSED: Final = PublicAccessBlock(True, True, True, True)


def facts(**changes: Any) -> BucketFacts:
    """A bucket of ours with nothing wrong; changes: fields of BucketFacts."""
    ordinary: dict[str, Any] = {
        "bucket": "audited",
        "region": "us-east-1",
        "owner": OWNER,
        "own_id": OWNER,
        "account": "111122223333",
        "ownership": "ObjectWriter",
        "public_access_block": CLOSED,
        "account_public_access_block": Skipped("there is none"),
        "acl": Acl(OWNER, (Grant(OWNER, "FULL_CONTROL"),)),
        "policy_is_public": False,
        "policy": "",
        "versioning": "Never",
        "encryption": Encryption("AES256"),
        "request_payer": "BucketOwner",
    }
    return BucketFacts(**ordinary | changes)
