"""The checks of seals: each row and line has a seal, even if many write at once."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import AsyncExitStack

from msgspec.structs import replace

from auditor.ledger.base import Event, Expectation, Ledger

from .base import ENTRY, KEY, MD5, NOTICE, OTHER, SHA, OpenLedger, check, lines, opened, subject

_MATCH = Event(
    key=KEY,
    at="",
    what="verified",
    version_id="null",
    etag="etag",
    size=5,
    detail={"algorithm": "sha256", "digest": SHA, "origin": "ledger"},
)


async def states(ledger: Ledger) -> Counter[str]:
    """Number of rows and lines by kind and state, as "row sound"."""
    return Counter([f"{one.kind} {one.state}" async for part in ledger.checked() for one in part])


@opened
async def every_row_and_line_is_sealed(ledger: Ledger) -> None:
    assert await states(ledger) == {}
    await ledger.arrived("bucket", NOTICE)
    await ledger.record(replace(ENTRY, source="s3"))
    await ledger.record(replace(ENTRY, digests={"sha256": SHA, "md5": MD5}, hashed_at="2026-02"))
    await ledger.record(replace(ENTRY, version_id="v1"))
    await ledger.record(replace(ENTRY, version_id="v2", digests={"sha256": OTHER}))
    await ledger.record_many([replace(ENTRY, digests={"sha256": OTHER}), replace(ENTRY, bucket="b2", key="k")])
    await ledger.expect("bucket", [Expectation(key=KEY, algorithm="md5", digest=MD5, origin="m", imported_at="t")])
    odd = replace(_MATCH, at="2026-03", version_id=None, detail={"algorithm": "sha256"})
    await ledger.note("bucket", [replace(_MATCH, at="2026-04"), odd, replace(_MATCH, what="missing", at="2026-05")])
    # created, s3's digest, both of ours, v1's, v2's, the conflict, b2's, imported, verified twice, missing
    assert await states(ledger) == {"row sound": 5, "line sound": 12}


@opened
async def matches_are_lines_however_many(ledger: Ledger) -> None:
    await ledger.record(ENTRY)
    times = [f"2026-01-{day:02}T00:00:00Z" for day in range(1, 13)]
    for at in times:
        await ledger.note("bucket", [replace(_MATCH, at=at)])
    assert [at for what, at, _ in await lines(ledger) if what == "verified"] == times
    assert (await subject(ledger)).versions[0].digests["sha256"].verified_at == times[-1]
    assert await states(ledger) == {"row sound": 1, "line sound": 13}


@check
async def twenty_workers_on_one_key_lose_no_line(opener: OpenLedger) -> None:
    async with AsyncExitStack() as stack:
        ledgers = [await stack.enter_async_context(opener()) for _ in range(4)]
        await ledgers[0].record(ENTRY)

        async def work(number: int) -> None:
            ledger = ledgers[number % 4]
            await ledger.record(replace(ENTRY, version_id=f"v{number}"))
            await ledger.note("bucket", [replace(_MATCH, at=f"2026-01-{number + 1:02}")])
            await ledger.note("bucket", [replace(_MATCH, at=f"2026-02-{number + 1:02}", what="changed")])

        await asyncio.gather(*map(work, range(20)))
        assert await states(ledgers[0]) == {"row sound": 21, "line sound": 61}
        assert Counter(what for what, _, _ in await lines(ledgers[0])) == {
            "recorded": 21,
            "verified": 20,
            "changed": 20,
        }
        assert (await subject(ledgers[0])).versions[0].digests["sha256"].verified_at == "2026-01-20"


@opened
async def sound_rows_are_not_healed(ledger: Ledger) -> None:
    await ledger.record(ENTRY)
    before = await subject(ledger), await lines(ledger)
    assert await ledger.heal("bucket", [KEY, "unknown"]) == 0
    assert await ledger.heal("bucket", []) == 0
    assert (await subject(ledger), await lines(ledger)) == before
    assert await states(ledger) == {"row sound": 1, "line sound": 1}


@opened
async def history_has_the_state_of_each_seal(ledger: Ledger) -> None:
    await ledger.record(ENTRY)
    await ledger.note("bucket", [replace(_MATCH, at="2026-04"), replace(_MATCH, what="missing", at="2026-05")])
    found = await ledger.history("bucket", KEY)
    assert [(one.what, one.seal) for one in found] == [(what, "sound") for what in ("recorded", "verified", "missing")]
