"""The list of all rules. A new rule gets its import and its line here; nothing registers itself."""

from __future__ import annotations

from typing import Final

from auditor.rules.access import (
    o01_everyone_control,
    o02_everyone_read,
    o03_any_account_control,
    o04_any_account_read,
    o05_public_acl_read,
    o07_other_account_control,
    o08_other_account_read,
    o09_foreign_owner,
    o10_anonymous_owner,
    o11_owner_without_control,
)
from auditor.rules.base import Rule
from auditor.rules.bucket import b01_acls_enabled, b02_block_incomplete, b03_acl_public, b04_policy_public
from auditor.rules.encryption import e01_unencrypted
from auditor.rules.integrity import i03_digests_differ
from auditor.rules.keys import k01_risky_name
from auditor.rules.metadata import m01_required

RULES: Final[tuple[Rule, ...]] = (
    o01_everyone_control.check,
    o02_everyone_read.check,
    o03_any_account_control.check,
    o04_any_account_read.check,
    o05_public_acl_read.check,
    o07_other_account_control.check,
    o08_other_account_read.check,
    o09_foreign_owner.check,
    o10_anonymous_owner.check,
    o11_owner_without_control.check,
    e01_unencrypted.check,
    m01_required.check,
    i03_digests_differ.check,
    k01_risky_name.check,
    b01_acls_enabled.check,
    b02_block_incomplete.check,
    b03_acl_public.check,
    b04_policy_public.check,
)
"""All rules, in the order of their groups: objects' ACLs and owners, encryption, metadata, integrity, keys, bucket."""
