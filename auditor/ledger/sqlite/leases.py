"""Leases in a SQLite ledger. Each claim is one transaction, so that only one of several claims at once succeeds."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from auditor.ledger.leases import Held, Lease, Work, lost, read_checkpoint, work_name, write_checkpoint
from auditor.ledger.sqlite.connection import as_number, as_text, blob, writing


def claim(
    connection: sqlite3.Connection, work: Work, owner: str, clock: Callable[[], float], seconds: float
) -> Lease | Held:
    name = work_name(work)
    with writing(connection):
        now = clock()  # read here, after the transaction has waited for the other writers
        row = connection.execute(
            "SELECT owner, until, fence, hops, checkpoint FROM leases WHERE work = ?", (name,)
        ).fetchone()
        holder, until, fence, hops, checkpoint = _read(*row) if row else (None, 0.0, 0, 0, None)
        if holder is not None and holder != owner and until > now:
            if until > now + seconds:  # the holder's clock runs ahead: if it died, its lease would last too long
                until = now + seconds
                connection.execute("UPDATE leases SET until = ? WHERE work = ?", (until, name))
            return Held(holder, until)
        connection.execute(
            "INSERT INTO leases (work, bucket, key, owner, until, fence, hops) VALUES (?,?,?,?,?,?,?) "
            "ON CONFLICT DO UPDATE SET "
            "owner = excluded.owner, until = excluded.until, fence = excluded.fence, hops = excluded.hops",
            (name, work.bucket, blob(work.key), owner, now + seconds, fence + 1, hops + 1),
        )
    return Lease(
        work=work,
        owner=owner,
        until=now + seconds,
        fence=fence + 1,
        hops=hops + 1,
        checkpoint=read_checkpoint(checkpoint),
    )


def _read(
    owner: object, until: object, fence: object, hops: object, checkpoint: object
) -> tuple[str | None, float, int, int, str | None]:
    """Return the row of a lease. A damaged time has passed, and a damaged number is 0."""
    ends = until if isinstance(until, int | float) else 0.0
    return as_text(owner), ends, as_number(fence) or 0, as_number(hops) or 0, as_text(checkpoint)


def renew(connection: sqlite3.Connection, lease: Lease, until: float, checkpoint: Mapping[str, Any] | None) -> Lease:
    written = None if checkpoint is None else write_checkpoint(checkpoint)
    with writing(connection):
        changed = connection.execute(
            "UPDATE leases SET until = ?, checkpoint = coalesce(?, checkpoint) "
            "WHERE work = ? AND owner = ? AND fence = ?",
            (until, written, work_name(lease.work), lease.owner, lease.fence),
        ).rowcount
    if not changed:
        raise lost(lease)
    return replace(lease, until=until, checkpoint=lease.checkpoint if checkpoint is None else checkpoint)


def release(connection: sqlite3.Connection, lease: Lease, *, done: bool) -> None:
    """End the lease; do nothing if its owner has lost it already.

    The row of the lease stays: its fence, the number of the claim, makes later writes of the old owner fail. done: True
    if the work is finished: delete the checkpoint, and count claims from 0 again.
    """
    forget = ", checkpoint = NULL, hops = 0" if done else ""
    with writing(connection):
        connection.execute(
            f"UPDATE leases SET owner = NULL, until = 0{forget} WHERE work = ? AND owner = ? AND fence = ?",  # noqa: S608
            (work_name(lease.work), lease.owner, lease.fence),
        )
