"""A run is filled: the facts that it could not read are asked again, and nothing else."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import auditor
from auditor.aio.stop import Stop
from auditor.audit.fill import has_holes
from auditor.cli.fill import fill_audit
from auditor.config.resources import Resources
from auditor.config.settings import Settings
from auditor.errors import RunChanged, RunComplete, UsageError
from auditor.ledger import open_ledger
from auditor.runs.reading import RunReader
from auditor.runs.stores.local import LocalStore
from tests.support.audit_runs import Result, audit, check, read_back
from tests.support.nights import asked, timeless
from tests.support.servers.clients import BUCKET
from tests.support.servers.stub import StubServer
from tests.support.servers.stub_faults import VANISH, on_keys
from tests.support.servers.world import STRANGER, WRITTEN, Odd, StubBucket

NUMBER = 60


def reader(out: Path, result: Result) -> RunReader:
    return RunReader(LocalStore(out), BUCKET, result.summary["run"])


async def fill(
    stub: StubServer, out: Path, result: Result, *, resume: str | None = None, part_lines: int = 50_000, **settings: Any
) -> Result:
    """Fill the run, and check everything that must hold of any run."""
    told = Settings(**{"endpoint_url": stub.url, "max_rate": None, "concurrency": 16, **settings})
    work = fill_audit(
        reader(out, result), told, Resources(store=LocalStore(out)), Stop(), resume=resume, part_lines=part_lines
    )
    return check(read_back((await work.run()).to_dict()))


def mend(bucket: StubBucket) -> None:
    for key in bucket.objects.keys:
        for item in bucket.objects.versions(key):
            item.deny = set()  # the samples share theirs


def latest(out: Path) -> dict[str, str]:
    found: dict[str, str] = json.loads((out / f"bucket={BUCKET}" / "latest.json").read_text())["runs"]["current"]
    return found


@pytest.fixture
def holed(bucket: StubBucket) -> StubBucket:
    """Objects of which every third denies the ACL, every fourth the HEAD, and every twelfth both."""
    for number in range(NUMBER):
        deny = {*(["acl"] if number % 3 == 0 else []), *(["head"] if number % 4 == 0 else [])}
        acl = "public-read" if number % 5 == 0 else "private"
        bucket.put(
            f"k{number:03}", b"x", acl=acl, deny=deny, metadata={"team": "x"}, sse=None if number % 7 else "AES256"
        )
    return bucket


async def test_exactly_the_unread_facts_are_asked(stub: StubServer, holed: StubBucket, tmp_path: Path) -> None:
    before = await audit(stub, tmp_path)
    assert before.coverage["undecided"] == 30
    files = {path: path.read_bytes() for path in before.folder.rglob("*") if path.is_file()}
    mend(holed)
    stub.forget()
    filled = await fill(stub, tmp_path, before)
    assert asked(stub) == (20, 15)
    assert (filled.summary["calls"]["acl"], filled.summary["calls"]["head"]) == (20, 15)
    assert stub.count("ListObjectsV2") <= 8  # those that are read at once share one
    assert (filled.coverage["undecided"], filled.coverage["audited"], filled.code) == (0, NUMBER, 3)
    assert {path: path.read_bytes() for path in before.folder.rglob("*") if path.is_file()} == files
    assert latest(tmp_path) == {"": filled.summary["run"]}
    assert auditor.check_run(filled.folder).exit_code == 0
    assert auditor.check_run(filled.folder).chain == (before.summary["run"],)
    changes = filled.summary["changes"]
    assert changes["against"] == before.summary["run"]
    assert changes["classes"].keys() <= {"decided"}
    anew = await audit(stub, tmp_path / "other")
    assert timeless(filled.objects) == timeless(anew.objects)
    assert timeless(filled.findings) == timeless(anew.findings)
    same = ("coverage", "verdicts", "audiences", "findings", "rules", "rules_undecided", "unread", "trust_unused")
    assert {name: filled.summary[name] for name in same} == {name: anew.summary[name] for name in same}


async def test_lines_say_when_a_fact_was_read(stub: StubServer, holed: StubBucket, tmp_path: Path) -> None:
    before = await audit(stub, tmp_path)
    holed.objects.versions("k003")[0].deny.clear()
    first = await fill(stub, tmp_path, before)
    assert (first.coverage["undecided"], first.code) == (29, 4)
    assert [line for line in before.undecided if line["key"] != "k003"] == first.undecided
    mend(holed)
    second = await fill(stub, tmp_path, first)
    times = [
        f"{run[:4]}-{run[4:6]}-{run[6:11]}:{run[11:13]}:{run[13:16]}"
        for run in (first.summary["run"], second.summary["run"])
    ]
    assert times[0] <= times[1]
    own = {"acl_from": None, "head_from": None}
    assert second.line("k003")["read_at"] == {"acl": times[0], "head": None, **own}
    assert second.line("k004")["read_at"] == {"acl": None, "head": times[1], **own}
    assert second.line("k012")["read_at"] == {"acl": times[1], "head": times[1], **own}
    carried = [line for line in second.objects if "read_at" not in line]
    assert carried == [line for line in before.objects if line["outcome"] == "audited"]
    unseen = f"of objects that run {first.summary['run']} had read: this run asked for what it lacked"
    assert any(
        words.startswith("changes since ") and words.endswith(unseen) for words in second.summary["not_looked_at"]
    )


async def test_a_run_without_a_hole_is_left(stub: StubServer, bucket: StubBucket, tmp_path: Path) -> None:
    bucket.put("k", b"x")
    before = await audit(stub, tmp_path)
    assert not has_holes(reader(tmp_path, before))
    with pytest.raises(RunComplete, match="there is nothing to fill"):
        await fill(stub, tmp_path, before)
    assert latest(tmp_path) == {"": before.summary["run"]}
    assert len(list((tmp_path / f"bucket={BUCKET}").glob("run=*"))) == 1


async def test_objects_that_vanished_and_changed(stub: StubServer, bucket: StubBucket, tmp_path: Path) -> None:
    """An ACL is combined with the HEAD of the same object only, whether or not its ETag shows the change."""
    kinds: dict[str, set[str]] = {"acl": {"acl"}, "head": {"head"}, "both": {"acl", "head"}}
    for name, deny in kinds.items():
        for fate in ("stays", "gone", "other", "again"):
            bucket.put(f"{name}-{fate}", b"x", deny=deny)
    before = await audit(stub, tmp_path)
    assert before.coverage["undecided"] == 12
    mend(bucket)
    later = WRITTEN + timedelta(hours=1)
    for name in kinds:
        bucket.delete(f"{name}-gone")
        bucket.put(f"{name}-other", b"other", acl="public-read", last_modified=later, sse=None)
        bucket.put(f"{name}-again", b"x", acl="public-read", last_modified=later)
    stub.forget()
    filled = await fill(stub, tmp_path, before)
    outcomes = {line["key"]: (line["outcome"], line["changed"], line["verdict"]) for line in filled.objects}
    for name in kinds:
        assert outcomes[f"{name}-stays"] == ("audited", False, "private")
        assert outcomes[f"{name}-gone"] == ("vanished", False, None)
        assert outcomes[f"{name}-other"] == ("audited", True, "exposed")
        assert outcomes[f"{name}-again"] == ("audited", False, "exposed")
        assert filled.line(f"{name}-again")["last_modified"] == "2026-01-02T04:04:05Z"
        other = filled.line(f"{name}-other")
        assert (other["size"], other["etag"]) == (5, other["head"]["etag"])
        assert other["read_at"]["acl"] == other["read_at"]["head"] is not None
    calls = Counter((one.operation, one.key) for one in stub.requests if one.key)
    for fate, number in {"stays": 0, "gone": 0, "other": 1, "again": 1}.items():
        assert calls["HeadObject", f"acl-{fate}"] == calls["GetObjectAcl", f"head-{fate}"] == number


async def test_an_object_that_is_overwritten_just_before_its_acl_is_read(
    stub: StubServer, bucket: StubBucket, tmp_path: Path
) -> None:
    """The listing that shows the object unchanged has to be younger than the ACL: one of before shows nothing."""
    for key in ("a", "b", "c"):
        bucket.put(key, b"old", deny={"acl"}, metadata={"old": "x"}, sse="AES256")
    before = await audit(stub, tmp_path)
    mend(bucket)

    def overwrite(operation: str, key: str | None, nth: int) -> None:
        if operation == "GetObjectAcl" and key == "b" and nth == 1:
            later = WRITTEN + timedelta(days=9)
            bucket.put("b", b"newer", acl="public-read", metadata={"new": "y"}, last_modified=later)

    stub.faults.append(overwrite)
    after = await fill(stub, tmp_path, before)
    line = after.line("b")
    assert (line["verdict"], line["size"], list(line["head"]["metadata"])) == ("exposed", 5, ["new"])
    assert [after.line(key)["size"] for key in "ac"] == [3, 3]


async def test_versions(stub: StubServer, bucket: StubBucket, tmp_path: Path) -> None:
    bucket.versioning = "Enabled"
    for number in range(12):
        for acl in ("private", "public-read"):
            bucket.put(f"k{number:03}", acl.encode(), acl=acl, deny={"acl"} if number % 2 else {"head"})
    bucket.delete("k011")
    before = await audit(stub, tmp_path, versions=True, part_lines=5)
    mend(bucket)
    stub.forget()
    filled = await fill(stub, tmp_path, before)
    assert (asked(stub), stub.count("ListObjectVersions")) == ((12, 12), 0)  # a version never changes
    anew = await audit(stub, tmp_path / "other", versions=True)
    assert timeless(filled.objects) == timeless(anew.objects)
    assert filled.coverage == anew.coverage
    assert filled.coverage["delete_markers"] == 1


async def test_facts_of_the_bucket(stub: StubServer, bucket: StubBucket, tmp_path: Path) -> None:
    """With them every object is judged again, without a call for it."""
    for number in range(20):
        bucket.put(f"k{number:03}", b"x", acl="public-read" if number % 5 == 0 else "private")
    for operation in ("GetBucketPolicy", "GetBucketEncryption", "GetPublicAccessBlock"):
        bucket.odd[operation] = Odd.DENIED
    before = await audit(stub, tmp_path)
    assert before.summary["rules_undecided"]
    assert before.summary["verdicts"]["unknown"]
    bucket.odd.clear()
    stub.forget()
    filled = await fill(stub, tmp_path, before)
    assert asked(stub) == (0, 0)
    assert stub.count("ListObjectsV2") == 0
    anew = await audit(stub, tmp_path / "other")
    assert timeless(filled.objects) == timeless(anew.objects)
    assert timeless(filled.findings) == timeless(anew.findings)
    assert (filled.summary["rules_undecided"], filled.summary["verdicts"]) == ([], anew.summary["verdicts"])
    assert json.loads((filled.folder / "run.json").read_text())["filled"]["run"] == before.summary["run"]


async def test_a_rule_that_had_no_answer_gets_the_values_that_it_needs(
    stub: StubServer, bucket: StubBucket, tmp_path: Path
) -> None:
    """The run folder has only names of metadata, and a name that promises a secret may have no value."""
    bucket.put("acl", b"x", acl="public-read", deny={"acl"}, metadata={"password": "x"})
    bucket.put("clean", b"x", acl="public-read", deny={"acl"}, metadata={"team": "x"})
    bucket.put("private", b"x", deny={"acl"}, metadata={"team": "x"})
    before = await audit(stub, tmp_path)
    mend(bucket)
    stub.forget()
    filled = await fill(stub, tmp_path, before)
    assert filled.line("acl")["rules"] == ["O02", "O15"]
    assert asked(stub) == (3, 1)


async def test_a_bucket_that_changed_is_judged_as_it_is(stub: StubServer, holed: StubBucket, tmp_path: Path) -> None:
    before = await audit(stub, tmp_path)
    mend(holed)
    statement = {"Sid": "Open", "Effect": "Allow", "Principal": "*", "Action": "s3:GetObject"}
    statement["Resource"] = f"arn:aws:s3:::{BUCKET}/*"
    holed.policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    filled = await fill(stub, tmp_path, before)
    assert filled.summary["verdicts"]["exposed"] == NUMBER
    assert any("policy" in words and "changed since" in words for words in filled.summary["not_looked_at"])
    assert auditor.check_run(filled.folder).exit_code == 0


async def test_the_configuration_is_that_of_the_run(stub: StubServer, bucket: StubBucket, tmp_path: Path) -> None:
    for number in range(6):
        bucket.put(f"k{number}", b"x", owner=STRANGER, deny={"acl"}, metadata={"team": "x"})
    own: dict[str, Any] = {
        "trusted": frozenset({STRANGER}),
        "rules": {"M01": {"required": ["project"]}},
        "keep_metadata": True,
    }
    before = await audit(stub, tmp_path, **own)
    mend(bucket)
    filled = await fill(stub, tmp_path, before)
    anew = await audit(stub, tmp_path / "other", **own)
    assert timeless(filled.objects) == timeless(anew.objects)
    assert filled.summary["rules"] == anew.summary["rules"]
    files = [json.loads((one.folder / "run.json").read_text()) for one in (before, filled)]
    same = ("now", "configuration", "selected", "target", "ledger")
    assert {name: files[0][name] for name in same} == {name: files[1][name] for name in same}
    again = auditor.judge_run(filled.folder)
    assert [(one.key, one.verdict, one.read_at) for one in again.objects()] == [
        (one.key, one.verdict, one.read_at) for one in auditor.open_run(filled.folder).objects()
    ]


async def test_digests_stay_as_they_were_counted(stub: StubServer, bucket: StubBucket, tmp_path: Path) -> None:
    for number in range(12):
        bucket.put(f"k{number:02}", b"x", deny={"head"} if number % 3 == 0 else {"acl"} if number % 3 == 1 else set())
    async with open_ledger(f"sqlite:{tmp_path / 'ledger.db'}") as ledger:
        before = await audit(stub, tmp_path / "runs", ledger=ledger, hash=True)
    assert before.summary["hashing"]["hashed_now"] == 8
    mend(bucket)
    bucket.delete("k01")
    bucket.put("k04", b"other", last_modified=datetime.now(UTC))
    filled = await fill(stub, tmp_path / "runs", before)
    counts = filled.summary["hashing"]
    assert (counts["hashed_now"], counts["pending"], counts["unhashable"]) == (6, 5, 0)
    assert [filled.line(key)["hashed"] for key in ("k01", "k04", "k07")] == [None, False, True]


async def test_a_fill_that_was_stopped_goes_on(stub: StubServer, holed: StubBucket, tmp_path: Path) -> None:
    before = await audit(stub, tmp_path)
    mend(holed)
    stub.forget()
    first = await fill(stub, tmp_path, before, max_calls=25, part_lines=7)
    assert not first.summary["complete"]
    assert latest(tmp_path) == {"": before.summary["run"]}
    with pytest.raises(RunChanged, match=f"fills run {before.summary['run']}: resume it with --fill"):
        await audit(stub, tmp_path, resume=first.summary["run"])
    filled = await fill(stub, tmp_path, before, resume=first.summary["run"])
    assert filled.folder == first.folder
    assert asked(stub) == (20, 15)
    anew = await audit(stub, tmp_path / "other")
    assert timeless(filled.objects) == timeless(anew.objects)
    assert auditor.check_run(filled.folder).exit_code == 0
    with pytest.raises(RunComplete):
        await fill(stub, tmp_path, before, resume=first.summary["run"])
    stopped = await audit(stub, tmp_path, max_calls=60)
    with pytest.raises(RunChanged, match="fills no run"):
        await fill(stub, tmp_path, before, resume=stopped.summary["run"])
    with pytest.raises(UsageError, match=f"--resume {stopped.summary['run']}"):
        await fill(stub, tmp_path, stopped)


async def test_an_older_run_does_not_become_the_latest(stub: StubServer, holed: StubBucket, tmp_path: Path) -> None:
    before = await audit(stub, tmp_path)
    mend(holed)
    later = before
    while later.summary["run"] <= before.summary["run"]:  # runs of one second are in any order
        later = await audit(stub, tmp_path)
    await fill(stub, tmp_path, before)
    assert latest(tmp_path) == {"": later.summary["run"]}


async def test_a_listing_that_is_denied_now_and_objects_that_vanish(
    stub: StubServer, holed: StubBucket, tmp_path: Path
) -> None:
    """Without a listing nothing shows that an object is still the same: both facts are read."""
    before = await audit(stub, tmp_path)
    mend(holed)
    holed.odd["ListObjectsV2"] = Odd.DENIED
    stub.forget()
    filled = await fill(stub, tmp_path, before)
    assert filled.coverage["undecided"] == 0
    assert asked(stub) == (35, 30)  # the 15 ACLs that were to join a known HEAD, twice
    holed.odd.clear()
    stub.faults = [on_keys(lambda key: key in ("k003", "k004"), VANISH)]
    filled = await fill(stub, tmp_path, before)
    assert (filled.coverage["vanished"], filled.coverage["undecided"]) == (2, 0)
