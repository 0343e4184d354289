"""Run folders of divided runs of any size, made without an audit: what each range would have written."""

from __future__ import annotations

import asyncio
import gzip
import json
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from auditor.model.access import Verdict
from auditor.model.finding import Severity
from auditor.reports.rollup import RollUpBuilder
from auditor.runs.checkpoint import Checkpoint, RangeEnd
from auditor.runs.folder import PART_LINES
from auditor.runs.paths import run_path
from auditor.runs.plan_file import PlannedRange, numbered
from auditor.runs.seal import Seal, SealedPart, sha256_of, sorted_parts
from auditor.runs.tally import Tally
from tests.support.divided_runs import Divided
from tests.support.servers.clients import BUCKET
from tests.support.servers.stub import StubServer

EXPOSED_EVERY: Final = 100
"""One object in so many is exposed, and has a finding."""
_RULE: Final = "O02"


def key_of(number: int) -> str:
    return f"plain/{number:012d}"


def fill(run: Divided, objects: int, ranges: int, part_lines: int = PART_LINES, *, sealed: bool = True) -> None:
    """Make each range of a begun run look like an ended one. sealed: False to leave out the seals of its parts.

    The run must be of the stub's bucket, which need not have these objects. A line is taken from an audit of it.
    """
    store, run_id = run.places.store, run.run_id
    assert run_id is not None
    folder = run_path(BUCKET, run_id)
    object_line, finding_line = _samples(run, folder)
    plan = json.loads(store.get(f"{folder}/plan.json") or b"")
    each = objects // ranges
    cuts = [None, *(key_of(each * number - 1) for number in range(1, ranges)), None]
    planned = [PlannedRange(numbered(at + 1), cuts[at], cuts[at + 1], each) for at in range(ranges)]
    plan["ranges"] = [vars_of(one) for one in planned]
    store.put(f"{folder}/plan.json", json.dumps(plan).encode())
    state = Checkpoint.from_json(store.get(f"{folder}/state.json") or b"")
    for at, one in enumerate(planned):
        parts = 0
        entries = []
        for first in range(at * each, (at + 1) * each, part_lines):
            numbers = range(first, min(first + part_lines, (at + 1) * each))
            for kind, line, step in (("findings", finding_line, EXPOSED_EVERY), ("objects", object_line, 1)):
                lines = "".join(
                    line[number % EXPOSED_EVERY != 0].replace("KEY", key_of(number)) for number in numbers[::step]
                )
                data, path = gzip.compress(lines.encode(), 1), f"{kind}/part-{one.id}-{parts:05}.jsonl.gz"
                store.put(f"{folder}/{path}", data)
                keys, count = numbers[::step], len(numbers[::step])
                ends = {"first": key_of(keys[0]), "last": key_of(keys[-1])}
                entries.append(SealedPart(path=path, **ends, lines=count, bytes=len(data), sha256=sha256_of(data)))
            parts += 1
        if sealed:
            store.put(f"{folder}/parts-{one.id}.json", Seal(run=run_id, parts=sorted_parts(entries)).to_json())
        tally = Tally()
        exposed = len(range(at * each, (at + 1) * each, EXPOSED_EVERY))
        tally.coverage |= {"listed": each, "audited": each}
        tally.verdicts |= {Verdict.EXPOSED.value: exposed, Verdict.PRIVATE.value: each - exposed}
        tally.findings[Severity.HIGH.value] = exposed
        tally.rules = {_RULE: exposed}
        ended = replace(
            state,
            target=replace(state.target, start_after=one.start_after, stop_at=one.stop_at),
            next_part=parts,
            start_after=key_of((at + 1) * each - 1),
            tally=tally,
            rollups=RollUpBuilder().saved(),
            ended=RangeEnd(),
        )
        store.put(f"{folder}/state-{one.id}.json", ended.to_json())


def vars_of(one: PlannedRange) -> dict[str, str | int | None]:
    return {"id": one.id, "start_after": one.start_after, "stop_at": one.stop_at, "keys": one.keys}


def _samples(run: Divided, folder: str) -> tuple[list[str], list[str]]:
    """Return the lines of an exposed object and of a private one, and of a finding twice, with KEY in place of keys."""
    store = run.places.store
    lines = {}
    for kind in ("objects", "findings"):
        data = store.get(f"{folder}/{kind}/part-00001-00000.jsonl.gz")
        lines[kind] = [json.loads(line) for line in gzip.decompress(data or b"").splitlines()]
        store.delete(f"{folder}/{kind}/part-00001-00000.jsonl.gz")
    store.delete(f"{folder}/parts-00001.json")
    finding = next(line for line in lines["findings"] if line["rule"] == _RULE)
    exposed = next(line for line in lines["objects"] if line["key"] == finding["key"])
    private = next(line for line in lines["objects"] if line["verdict"] == "private" and not line["rules"])
    texts = [json.dumps({**line, "key": "KEY"}, separators=(",", ":")) + "\n" for line in (exposed, private, finding)]
    return texts[:2], [texts[2], texts[2]]


async def make(stub: StubServer, out: Path, objects: int, ranges: int, *, sealed: bool = True) -> Divided:
    """Return a begun run, and make its ranges look ended. The stub's bucket needs an exposed and a private object.

    sealed: as for fill().
    """
    run = Divided(stub, out)
    await run.begin(1)
    await run.audit("00001")
    await asyncio.to_thread(fill, run, objects, ranges, sealed=sealed)
    return run
