"""rollups.json of a run that several processes did is that of one process, and old checkpoints go on without it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import auditor
from auditor.model.access import Verdict
from auditor.runs.folder_place import open_run
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


def closed(answer: auditor.WhatIf) -> int:
    """The number of exposed objects that a change closes; it opens none."""
    moves = answer.counts.moves.items()
    assert not answer.counts.unpredictable
    assert Verdict.EXPOSED not in {move.after for move, _ in moves}
    return sum(objects.objects for move, objects in moves if move.before is Verdict.EXPOSED)


async def test_what_if_agrees_with_the_changes_to_make_first(
    stub: StubServer, bucket: StubBucket, tmp_path: Path
) -> None:
    for number in range(30):
        acl = ("public-read", "private", "authenticated-read")[number % 3]
        stub.put(BUCKET, f"{('www', 'data')[number % 2]}/{number:02}", b"data", acl=acl)
    statement = {"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject"}
    statement["Resource"] = f"arn:aws:s3:::{BUCKET}/www/*"
    bucket.policy = json.dumps({"Version": "2012-10-17", "Statement": [{"Sid": "Website", **statement}]})
    result = await audit(stub, tmp_path)
    with open_run(result.folder) as run:
        found = run.rollups()
    assert found is not None
    exposed = result.summary["verdicts"]["exposed"]
    assert exposed == 25
    assert [step.of for step in found.first] == [exposed] * len(found.first)
    assert found.first[-1].closes == exposed
    (flagged,) = (step for step in found.first if step.how)
    assert flagged.how == "--ignore-public-acls"
    left = exposed - flagged.closes
    answer = await asyncio.to_thread(auditor.what_if, result.folder, ignore_public_acls=True)
    assert exposed - closed(answer) == left
    gone = await asyncio.to_thread(auditor.what_if, result.folder, ignore_public_acls=True, policy="")
    assert closed(gone) == exposed
