"""Write the index page of the configured targets at the end of an invocation of the audit function."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from msgspec.structs import replace

from auditor.config.resources import Resources
from auditor.estate.index import MOST, NAME, latest_entry, write_index
from auditor.lambdas.event import EVERY, Invocation, configured_targets
from auditor.model.target import Target


def with_index(invocation: Invocation, stores: Resources) -> Resources:
    """Return the stores with the path of the index page, if the invocation writes one and they have none."""
    return replace(stores, index=NAME) if stores.index is None and _targets_of(invocation) else stores


def _targets_of(invocation: Invocation) -> tuple[Target, ...]:
    """Return the targets of the index page; () if the invocation writes none: for every bucket the start does, and a
    target that is not configured is on no page.
    """
    if invocation.settings.buckets == EVERY:
        return ()
    targets = configured_targets(invocation.settings)
    names = {target.uri for target in targets}
    if len(targets) > MOST or names.isdisjoint(target.uri for target in invocation.targets):
        return ()
    return targets


async def write_function_index(invocation: Invocation, resources: Resources, failed: Mapping[Target, str]) -> None:
    """Write the index page, from the last complete run of each configured target.

    failed: the sentence of each target that failed in this invocation. Do nothing unless the invocation has worked on
    one of them, and at most MOST are configured. Raises OutputError.
    """
    targets = _targets_of(invocation)
    if not targets:
        return
    store, sentences = resources.store, {target.uri: sentence for target, sentence in failed.items()}

    def write() -> None:
        write_index(store, [replace(latest_entry(store, one), failed=sentences.get(one.uri)) for one in targets])

    await asyncio.to_thread(write)
