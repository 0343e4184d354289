"""The policies of KMS keys in a divided run: each range reads those of its objects' keys, and bucket.json gets all."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from auditor.audit.divided.begun import BegunFiles
from auditor.config.settings import Settings
from auditor.errors import RunChanged
from auditor.model.object import Skipped, Unread
from auditor.runs.bucket_file import BucketFile
from auditor.runs.key_file import keys_name, load_keys
from auditor.runs.seal import sha256_of
from auditor.runs.stores.base import Store
from auditor.s3.key_policies import ACTION, MOST, TOO_MANY

Policies = Mapping[str, str | Unread]


def reads_keys(file: BucketFile) -> bool:
    """True if the run was begun to read the policies of its objects' KMS keys."""
    return not isinstance(file.facts.key_policies, Skipped)


def check_keys(file: BucketFile, settings: Settings) -> None:
    """Raise RunChanged if --key-policies is given for a run that was begun without it. Its other ranges have no
    policies. Without the setting, a run goes on to read what it was begun to read.
    """
    if settings.key_policies and file.read[-1].ask.head is None and not reads_keys(file):
        raise RunChanged(f"run {file.run} was begun without --key-policies: leave that out, or start a new run")


def with_policies(file: BucketFile, found: Policies) -> BucketFile:
    """Return bucket.json with these policies besides its own. Of a key that has two answers, a policy counts before an
    error, and else the earlier one.
    """
    own = file.facts.key_policies
    policies: dict[str, str | Unread] = {} if isinstance(own, Skipped) else dict(own)
    for key, policy in found.items():
        known = policies.get(key)
        if known is None and len(policies) >= MOST:  # a run in one process reads no more
            policy = Unread(ACTION, TOO_MANY)
        if known is None or (isinstance(known, Unread) and not isinstance(policy, Unread)):
            policies[key] = policy
    last = file.read[-1]
    facts = replace(last.facts, key_policies=policies)
    return replace(file, read=(*file.read[:-1], replace(last, facts=facts)))


def with_all_policies(store: Store, begun: BegunFiles) -> tuple[BegunFiles, dict[str, str]]:
    """Return the begun run with the policies that its ranges have read in bucket.json, and the SHA-256 of the ranges'
    files by name. Blocks.

    Raises RunDamaged if a range's file is damaged.
    """
    file, digests = begun.file, dict[str, str]()
    if not reads_keys(file):
        return begun, digests
    for one in begun.plan.ranges:
        found = load_keys(store, begun.path, begun.plan.run, one.id)
        if found is not None:
            keys, data = found
            file = with_policies(file, keys.policies)
            digests[keys_name(one.id)] = sha256_of(data)
    return replace(begun, file=file, data=file.to_json()), digests
