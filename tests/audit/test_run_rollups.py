"""rollups.json of a run that several processes did is that of one process, and old checkpoints go on without it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from auditor.offline.folder_place import open_run
from tests.support.audit_runs import Result, audit
from tests.support.servers.clients import BUCKET
from tests.support.servers.stub import StubServer
from tests.support.servers.world import StubBucket


def groups_of(result: Result) -> Any:
    """The roll-ups of a run, without its ID and its time."""
    with open_run(result.folder) as run:
        found = run.rollups()
    value = json.loads(found.to_json())
    for group in value["groups"]:
        times = [group.pop("since"), *(sample.pop("since") for sample in group["samples"])]
        assert len({time for time in times if time is not None}) <= 1
    return {name: value[name] for name in ("complete", "totals", "groups", "first", "not_predicted")}


async def test_a_resumed_run_has_the_same_rollups(stub: StubServer, bucket: StubBucket, tmp_path: Path) -> None:
    bucket.versioning = "Enabled"
    for number in range(30):
        denied = {"acl"} if number % 7 == 0 else set()
        for acl in ("public-read", "authenticated-read" if number % 3 else "private"):
            stub.put(BUCKET, f"a/{number % 5}/{number:02}", b"data", acl=acl, deny=denied)
    whole = groups_of(await audit(stub, tmp_path / "whole", versions=True))
    assert {group["kind"] for group in whole["groups"]} == {"finding", "verdict", "undecided"}
    assert [step["decides"] for step in whole["first"]] == [0, whole["totals"]["undecided"]]
    settings: dict[str, Any] = {"versions": True, "max_calls": 60, "part_lines": 3}
    result = await audit(stub, tmp_path / "cut", **settings)
    hops = 1
    while not result.summary["complete"]:
        assert groups_of(result)["complete"] is False
        result = await audit(stub, tmp_path / "cut", **settings, resume=result.summary["run"])
        hops += 1
    assert hops > 2
    assert groups_of(result) == whole
