"""The facts of a bucket for an audit without a server."""

from __future__ import annotations

from typing import Final

from auditor.model.bucket import BucketFacts, Encryption, PublicAccessBlock
from auditor.model.object import Acl, Grant, Skipped

BUCKET: Final = "audited"
OWNER: Final = "a0" * 32
FACTS: Final = BucketFacts(
    bucket=BUCKET,
    region="us-east-1",
    owner=OWNER,
    own_id=OWNER,
    account="111122223333",
    ownership="ObjectWriter",
    public_access_block=PublicAccessBlock(),
    account_public_access_block=Skipped("there is none"),
    acl=Acl(OWNER, (Grant(OWNER, "FULL_CONTROL"),)),
    policy_is_public=False,
    policy="",
    versioning="Never",
    encryption=Encryption("AES256"),
    request_payer="BucketOwner",
)
