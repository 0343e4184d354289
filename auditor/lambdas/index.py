"""Write the index page of the configured targets at the end of an invocation of the audit function."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from auditor.audit.index import latest_entry, write_index
from auditor.config.resources import Resources
from auditor.lambdas.event import EVERY, Invocation, configured_targets
from auditor.model.target import Target

MOST: Final = 100
"""Largest number of targets with an index page. Each page reads three files of each target, after each invocation;
`auditor report OUT` writes the page of more targets."""


async def write_function_index(invocation: Invocation, resources: Resources, failed: Mapping[Target, str]) -> None:
    """Write the index page, from the last complete run of each configured target.

    failed: the sentence of each target that failed in this invocation. Do nothing unless several targets are
    configured, and the invocation has worked on one of them. Raises OutputError.
    """
    if invocation.settings.buckets == EVERY:
        return  # the next start of every bucket writes it
    targets = configured_targets(invocation.settings)
    names = {target.uri for target in targets}
    if not 1 < len(targets) <= MOST or names.isdisjoint(target.uri for target in invocation.targets):
        return
    store, sentences = resources.store, {target.uri: sentence for target, sentence in failed.items()}

    def write() -> None:
        write_index(store, [replace(latest_entry(store, one), failed=sentences.get(one.uri)) for one in targets])

    await asyncio.to_thread(write)
