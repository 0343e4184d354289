"""The list of all rules. A new rule gets its import and its line here; nothing registers itself."""

from __future__ import annotations

from typing import Final

from auditor.rules.access import (
    o01_everyone_control,
    o02_everyone_read,
    o03_any_account_control,
    o04_any_account_read,
    o05_public_acl_read,
    o06_other_group,
    o07_other_account_control,
    o08_other_account_read,
    o09_foreign_owner,
    o10_anonymous_owner,
    o11_owner_without_control,
    o12_object_write,
    o13_dormant_grant,
    o15_secret_metadata,
    o16_anonymous_grant,
)
from auditor.rules.base import Rule
from auditor.rules.bucket import (
    b01_acls_enabled,
    b02_block_incomplete,
    b03_acl_public,
    b04_policy_public,
    b05_others_control,
    b07_default_encryption,
    b08_customer_keys_allowed,
    b20_service_without_source,
    b21_broad_network,
)
from auditor.rules.encryption import (
    e01_unencrypted,
    e02_required_kind,
    e03_wrong_key,
    e04_foreign_key,
    e06_customer_key,
    e07_weaker_than_default,
)
from auditor.rules.integrity import i03_digests_differ
from auditor.rules.keys import k01_risky_name, k02_sensitive_name
from auditor.rules.lock import l01_required_lock, l02_retention_ends
from auditor.rules.metadata import m01_required, m02_value_form, m04_content_type, m07_foreign_redirect
from auditor.rules.replication import r01_replication_failed, r02_replication_late
from auditor.rules.versions import v01_old_version_exposed

RULES: Final[tuple[Rule, ...]] = (
    o01_everyone_control.check,
    o02_everyone_read.check,
    o03_any_account_control.check,
    o04_any_account_read.check,
    o05_public_acl_read.check,
    o06_other_group.check,
    o07_other_account_control.check,
    o08_other_account_read.check,
    o09_foreign_owner.check,
    o10_anonymous_owner.check,
    o11_owner_without_control.check,
    o12_object_write.check,
    o13_dormant_grant.check,
    o15_secret_metadata.check,
    o16_anonymous_grant.check,
    e01_unencrypted.check,
    e02_required_kind.check,
    e03_wrong_key.check,
    e04_foreign_key.check,
    e06_customer_key.check,
    e07_weaker_than_default.check,
    m01_required.check,
    m02_value_form.check,
    m04_content_type.check,
    m07_foreign_redirect.check,
    i03_digests_differ.check,
    k01_risky_name.check,
    k02_sensitive_name.check,
    l01_required_lock.check,
    l02_retention_ends.check,
    r01_replication_failed.check,
    r02_replication_late.check,
    v01_old_version_exposed.check,
    b01_acls_enabled.check,
    b02_block_incomplete.check,
    b03_acl_public.check,
    b04_policy_public.check,
    b05_others_control.check,
    b07_default_encryption.check,
    b08_customer_keys_allowed.check,
    b20_service_without_source.check,
    b21_broad_network.check,
)
"""All rules, in the order of their groups: objects' ACLs and owners, encryption, metadata, integrity, keys, bucket."""
RULES_BY_ID: Final = {rule.id: rule for rule in RULES}
