"""Write verifications of digests into a DynamoDB ledger, each into the item of its digest. This costs one write
unit.
"""

from __future__ import annotations

from typing import Final

from auditor.errors import LedgerError
from auditor.ledger.base import Event, Known, Version
from auditor.ledger.dynamodb.calls import ConditionFailed
from auditor.ledger.dynamodb.changes import Change
from auditor.ledger.dynamodb.items import (
    HISTORY,
    LOOKS,
    Item,
    Name,
    evidence,
    identity,
    partition,
    text,
)
from auditor.ledger.dynamodb.lines import look_time, write_look
from auditor.ledger.dynamodb.table import Table
from auditor.ledger.matching import NULL
from auditor.ledger.seals import line_seal

_TRIES: Final = 30
"""Number of attempts to write a verification; then LedgerError. After the first attempt, an attempt fails only if
another writer was first, so that about this many workers can verify one object at the same time."""


async def looked(table: Table, bucket: str, event: Event) -> bool:
    """Write a verification of a digest into the digest's item.

    Return False if that is not possible, for example because the digest is damaged. The verification then needs a
    history line of its own.

    The write is conditional on the verification before it, so that the verifications of a digest form one chain. If
    another writer was first, the item is read, and the write is repeated.
    """
    algorithm = event.detail.get("algorithm")
    if event.etag is None or algorithm is None:
        return False
    name = partition(bucket, event.key), identity(event.version_id, event.etag)
    version, seal = _as_told(event, algorithm), event.chain.partition(":")[2]
    item: Item = {}
    for number in range(_TRIES):
        if number or version is None or not event.chain:
            item = await _sealed(table, bucket, event, name, algorithm)
            if not item:
                return False
            version, _ = evidence(bucket, event.key, item)
            seal = text(item, f"{algorithm}_look_seal") or ""
        full = len(item.get(f"{algorithm}_looks", {}).get("L", [])) >= LOOKS
        if full:
            await table.update(_archive(name, item, version, algorithm))
        try:
            await table.update(_added(table, Change(name), bucket, event, version, algorithm, seal, alone=full))
        except ConditionFailed:
            continue
        return True
    raise LedgerError(f"the ledger table {table.name!r} changes while it is written: stop what deletes its items")


async def _sealed(table: Table, bucket: str, event: Event, name: Name, algorithm: str) -> Item:
    """Return the item of a digest. Return {} if the digest is missing, is damaged, or has this or a later verification
    already.
    """
    item = await table.get(name) or {}
    if algorithm not in item or (text(item, f"{algorithm}_verified_at") or "") >= event.at:
        return {}
    version, _ = evidence(bucket, event.key, item)
    return {} if version.digests[algorithm].damaged else item


def _as_told(event: Event, algorithm: str) -> Version | None:
    """Return the object version, with one digest, that a "verified" event names; None if the event lacks digest, ETag
    or size.
    """
    digest = event.detail.get("digest")
    if digest is None or event.etag is None or event.size is None:
        return None
    known = Known(digest=digest, source="auditor", recorded_at="", verified_at=None, bytes_read=0)
    name = event.version_id or NULL
    return Version(version_id=name, etag=event.etag, size=event.size, digests={algorithm: known}, first_seen="")


def _added(
    table: Table,
    change: Change,
    bucket: str,
    event: Event,
    version: Version,
    algorithm: str,
    seal: str,
    *,
    alone: bool = False,
) -> Change:
    """Return the change that adds a verification to the item of its digest, on the condition that `seal` is the seal of
    the last one there.

    seal: "" if there is no verification yet. alone: True to drop the earlier verifications, which are archived.
    """
    look = write_look(event, version, algorithm, table.place())
    attribute = f"{algorithm}_looks"
    if alone:
        change.put(attribute, [look]).put(f"{algorithm}_look_from", seal)
    else:
        change.append(attribute, look)
    change.put(f"{algorithm}_look_seal", line_seal(bucket, event, seal)).put(f"{algorithm}_verified_at", event.at)
    change.when(algorithm, version.digests[algorithm].digest).when("size", version.size)
    change.when(f"{algorithm}_look_seal", seal or None).when_there(f"{algorithm}_seal")
    verified = f"{algorithm}_verified_at"
    return change.when_any((verified, "=", None), (verified, "<", event.at))


def _archive(name: Name, item: Item, version: Version, algorithm: str) -> Change:
    """Return the change that copies the verifications in a digest's item into one history line, before they are
    dropped.
    """
    looks = [str(one["S"]) for one in item[f"{algorithm}_looks"]["L"]]
    seal = text(item, f"{algorithm}_look_seal") or ""
    change = Change((name[0], f"{HISTORY}{look_time(looks[0])}#{seal}"))
    change.put("version_id", version.version_id).put("etag", version.etag).put("size", version.size)
    change.put(algorithm, version.digests[algorithm].digest).put(f"{algorithm}_looks", looks)
    change.put(f"{algorithm}_look_from", text(item, f"{algorithm}_look_from")).put(f"{algorithm}_look_seal", seal)
    return change
