"""Facts are kept from a divided run, and by one, as by a run over all keys at once."""

from __future__ import annotations

import asyncio
import gzip
from pathlib import Path
from typing import Any

import auditor
from auditor.config.values import keep
from tests.support.audit_runs import audit
from tests.support.divided_runs import Divided
from tests.support.nights import asked, timeless
from tests.support.servers.clients import BUCKET
from tests.support.servers.samples import sample_bucket
from tests.support.servers.stub import StubServer


async def test_second_night_in_other_ranges_keeps_the_facts_of_the_first(stub: StubServer, tmp_path: Path) -> None:
    made = stub.world.buckets[BUCKET] = sample_bucket(120)
    rules: dict[str, Any] = {"only": ("O01", "O02", "E01")}
    first = await Divided(stub, tmp_path / "kept", **rules).whole(3, part_lines=20)
    outdated = tmp_path / "kept" / f"bucket={BUCKET}" / "renewals" / "20250102T030405Z-0a1b2c.jsonl.gz"
    outdated.parent.mkdir()
    outdated.write_bytes(gzip.compress(b""))
    await asyncio.sleep(1)  # runs that begin in one second are in no order
    made.put("plain/0000050.txt", b"newer", acl="public-read")
    live = await audit(stub, tmp_path / "live", **rules)
    unread = sum("unread" in line["acl"] or "unread" in line["head"] for line in live.objects)
    stub.forget()
    second = await Divided(stub, tmp_path / "kept", keep=keep("acl=9000d,head=9000d", ""), **rules).whole(5)
    calls = asked(stub)
    assert 1 <= min(calls) <= max(calls) <= unread + 5  # the new object, what was not read, and hardly a turn
    assert not outdated.exists()  # the first range deletes it
    assert timeless(second.objects) == timeless(live.objects)
    assert timeless(second.findings) == timeless(live.findings)
    assert second.summary["kept"]["acl"]["run"] >= len(second.objects) - unread - 5
    began = first.summary["run"]
    assert second.summary["kept"]["acl"]["oldest"].replace("-", "").replace(":", "") == began.partition("-")[0]
    assert auditor.check_run(second.folder).exit_code == 0
