"""The policies of KMS keys: in a file of each range while a run is at work, in keys.json when it has ended."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from itertools import chain
from typing import Final

from msgspec.structs import replace

from auditor.aio.tasks import in_order
from auditor.model.bucket import MOST_KEYS, UNREAD_KEY
from auditor.model.object import Skipped, Unread
from auditor.runs.paths import range_keys_name
from auditor.runs.run_files import FactFile, RunPlan, load
from auditor.runs.stores.base import Store

NAME: Final = "keys.json"
_AHEAD: Final = 16
"""Number of ranges whose files are read at the same time."""
StoredPolicies = Mapping[str, str | Unread]
"""By the KMS key's ARN or ID as HEAD names it: the policy as JSON text, or Unread."""


class KeyFile(FactFile, frozen=True, kw_only=True):
    """The content of keys.json, and of the file of a range."""

    policies: StoredPolicies


def range_policies(store: Store, folder: str, run_id: str, range_id: str) -> StoredPolicies:
    """Return the policies that a range has read. folder: path of the run folder. Raises RunDamaged. Blocks."""
    found = load(store, f"{folder}/{range_keys_name(range_id)}", KeyFile, run_id)
    return {} if found is None else found.policies


def stored_policies(store: Store, folder: str, plan: RunPlan, *, complete: bool) -> StoredPolicies:
    """Return the policies that a run has read. Raises RunDamaged. Blocks. complete: True if the run is: keys.json then
    has all. That of a run which was stopped lacks what the ranges have read since.
    """
    whole = load(store, f"{folder}/{NAME}", KeyFile, plan.run)
    if whole is not None and complete:
        return whole.policies
    reads = (partial(range_policies, store, folder, plan.run, one.id) for one in plan.ranges)
    return joined_policies(chain(in_order(reads, _AHEAD), [{} if whole is None else whole.policies]))


def joined_policies(found: Iterable[StoredPolicies]) -> StoredPolicies:
    """Return the policies of several ranges. Of a key that has two answers, a policy counts before an error, and else
    the earlier one.
    """
    policies: dict[str, str | Unread] = {}
    for key, policy in (pair for one in found for pair in one.items()):
        known = policies.get(key)
        if known is None and len(policies) >= MOST_KEYS:  # a run in one process reads no more
            policy = UNREAD_KEY
        if known is None or (isinstance(known, Unread) and not isinstance(policy, Unread)):
            policies[key] = policy
    return policies


def with_policies(plan: RunPlan, policies: StoredPolicies) -> RunPlan:
    """Return the plan of a run with these policies besides its own."""
    own = {} if isinstance(plan.facts.key_policies, Skipped) else plan.facts.key_policies
    return replace(plan, facts=replace(plan.facts, key_policies=joined_policies([own, policies])))
