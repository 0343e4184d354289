"""Nights on a bucket that hardly changes: only what is due is asked, and the results are those of a live run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pytest

import auditor
from auditor.config.layers import Layer, resolve
from auditor.model.bucket import PublicAccessBlock
from auditor.model.dates import iso_date
from tests.support.audit_runs import Result
from tests.support.nights import DAY, Nights, asked, keys_asked, timeless
from tests.support.odd_keys import ODD_KEYS
from tests.support.servers.stub import StubServer
from tests.support.servers.world import OWNER, STRANGER, Odd, StubBucket

NUMBER: Final = 40
KEEP: Final = {"keep": {"acl": "7d", "head": "14d"}}
MONTH: Final = {"keep": {"acl": "90d", "head": "90d"}}
SAME: Final = ("coverage", "verdicts", "audiences", "findings", "rules", "rules_undecided", "unread", "trust_unused")


@pytest.fixture
def filled(bucket: StubBucket) -> StubBucket:
    for number in range(NUMBER):
        acl = "public-read" if number % 5 == 0 else "private"
        bucket.put(f"k{number:03}", b"x", acl=acl, metadata={"team": "x"}, sse=None if number % 7 else "AES256")
    return bucket


def settings(**more: Any) -> dict[str, Any]:
    found = resolve([Layer(more, str)])
    return {name: getattr(found, name) for name in more}


def assert_like(kept: Result, live: Result) -> None:
    assert timeless(kept.objects) == timeless(live.objects)
    assert timeless(kept.findings) == timeless(live.findings)
    assert timeless(kept.undecided) == timeless(live.undecided)
    assert {name: kept.summary[name] for name in SAME} == {name: live.summary[name] for name in SAME}


async def test_each_fact_is_asked_once_in_its_round_and_the_results_are_those_of_a_live_run(
    stub: StubServer, filled: StubBucket, tmp_path: Path
) -> None:
    nights = Nights(stub, tmp_path / "kept", **settings(**KEEP))
    live = await nights.live(tmp_path / "live")
    first = await nights.night()
    assert asked(stub) == (NUMBER, NUMBER)
    assert not any("read_at" in line for line in first.objects)
    keys = [line["key"] for line in first.objects]
    read = {fact: {key: [nights.now - DAY] for key in keys} for fact in ("acl", "head")}
    # O15 judges values of metadata, which no line has, of objects that are exposed
    exposed = {line["key"] for line in first.objects if line["verdict"] == "exposed"}
    for _ in range(15):
        now = nights.now
        night = await nights.night()
        assert_like(night, live)
        for fact, operation in (("acl", "GetObjectAcl"), ("head", "HeadObject")):
            assert stub.count(operation) == len(keys_asked(stub, operation))
            for key in keys_asked(stub, operation):
                read[fact][key].append(now)
        for line in night.objects:
            for fact, at in (line.get("read_at") or {"acl": None, "head": None}).items():
                if fact in read:
                    assert (now if at is None else iso_date(at).timestamp()) == read[fact][line["key"]][-1]
        assert 0 < stub.count("GetObjectAcl") < NUMBER / 2
    rounds = {fact: [later - one for key in keys for one, later in pairwise(read[fact][key])] for fact in read}
    assert max(rounds["acl"]) == 6 * DAY
    assert sorted(rounds["acl"])[NUMBER] == 6 * DAY  # but for the first round of each key
    assert {times[-1] for key, times in read["head"].items() if key in exposed} == {nights.now - DAY}
    assert {len(times) for key, times in read["head"].items() if key not in exposed} <= {2, 3}
    assert max(rounds["head"]) <= 13 * DAY


async def test_summary_and_page_state_the_oldest_fact(stub: StubServer, filled: StubBucket, tmp_path: Path) -> None:
    nights = Nights(stub, tmp_path, only=("O01", "O02", "E01"), **settings(**MONTH))
    await nights.night()
    night = await nights.night()
    kept = night.summary["kept"]
    acls, heads = asked(stub)
    assert kept == {
        "acl": {"run": NUMBER - acls, "inventory": 0, "oldest": "2027-03-01T02:00:00Z"},
        "head": {"run": NUMBER - heads, "inventory": 0, "oldest": "2027-03-01T02:00:00Z"},
    }
    assert sum("of 2027-03-01T02:00:00Z" in words for words in night.summary["not_looked_at"]) == 2
    assert "the oldest of 2027-03-01T02:00:00Z" in (night.folder / "report.html").read_text()
    again = await nights.night(keep=None)
    assert again.summary["kept"]["acl"] == {"run": 0, "inventory": 0, "oldest": None}


async def test_object_that_is_another_one_by_now_is_read_anew(
    stub: StubServer, filled: StubBucket, tmp_path: Path
) -> None:
    nights = Nights(stub, tmp_path, only=("O02", "E01"), **settings(**MONTH))
    began = datetime.fromtimestamp(nights.now, UTC)
    filled.put("k004", b"x", last_modified=began - timedelta(minutes=14))  # the ACL may be that of the object before
    filled.put("k005", b"x", last_modified=began - timedelta(minutes=16))
    await nights.night()
    filled.put("k001", b"y", acl="public-read", sse="AES256")
    filled.put("k002", b"x", acl="public-read", sse="AES256", last_modified=datetime(2027, 2, 1, tzinfo=UTC))
    filled.objects.versions("k003")[0].storage_class = "GLACIER_IR"  # as by a lifecycle rule, which keeps the ACL
    nights.now -= DAY / 2  # hardly a turn
    night = await nights.night()
    acls, heads = keys_asked(stub, "GetObjectAcl"), keys_asked(stub, "HeadObject")
    assert (acls, heads) == ({"k001", "k002", "k004"}, {"k001", "k002", "k003", "k004"})
    for key in ("k001", "k002"):
        assert "read_at" not in night.line(key)
        assert night.line(key)["verdict"] == "exposed"


async def test_undecided_facts_are_asked_every_night(stub: StubServer, filled: StubBucket, tmp_path: Path) -> None:
    filled.objects.versions("k001")[0].deny.update({"acl"})
    filled.objects.versions("k002")[0].deny.update({"head"})
    filled.put("k003", b"x", sse=None, sse_c=True)
    nights = Nights(stub, tmp_path, only=("O02", "E01"), **settings(**MONTH))
    await nights.night()
    for _ in range(2):
        night = await nights.night()
        assert "k001" in keys_asked(stub, "GetObjectAcl")
        assert {"k002", "k003"} <= keys_asked(stub, "HeadObject")
        assert night.coverage["undecided"] == 3
    for key in ("k001", "k002"):
        filled.objects.versions(key)[0].deny.clear()
    assert (await nights.night()).coverage["undecided"] == 1


async def test_kept_facts_are_judged_by_the_present_rules_and_those_that_lack_are_asked(
    stub: StubServer, filled: StubBucket, tmp_path: Path
) -> None:
    nights = Nights(stub, tmp_path / "kept", **settings(**MONTH))
    await nights.night(only=("O02",))
    for owner in ("team", "owner"):
        rules: dict[str, Any] = {"rules": {"M01": {"required": [owner]}}, "only": ("M01", "O04", "O02")}
        live = await nights.live(tmp_path / owner, **rules)
        night = await nights.night(**rules)
        assert asked(stub)[0] < NUMBER / 5
        assert asked(stub)[1] == NUMBER if owner == "team" else asked(stub)[1] < NUMBER / 5
        assert_like(night, live)
    assert night.summary["rules"]["M01"] == NUMBER


async def test_object_that_becomes_exposed_gets_its_values_judged(
    stub: StubServer, filled: StubBucket, tmp_path: Path
) -> None:
    filled.put("secret", b"x", metadata={"password": "hunter2hunter2"})
    nights = Nights(stub, tmp_path, only=("O02", "O15"), **settings(keep="acl=2d,head=90d"))
    await nights.night()
    filled.put("secret", b"x", metadata={"password": "hunter2hunter2"}, acl="public-read")  # LastModified stands
    night = await nights.night()
    assert night.line("secret")["rules"] == ["O02", "O15"]


async def test_versions_with_odd_keys(stub: StubServer, bucket: StubBucket, tmp_path: Path) -> None:
    bucket.versioning = "Enabled"
    for key in ODD_KEYS.values():
        for body in (b"1", b"2", b"3"):
            bucket.put(key, body, acl="public-read" if body == b"2" else "private")
    bucket.delete(next(iter(ODD_KEYS.values())))
    nights = Nights(stub, tmp_path / "kept", versions=True, only=("O02", "E01"), **settings(**MONTH))
    first = await nights.night(part_lines=7)
    live = await nights.live(tmp_path / "live")
    night = await nights.night(part_lines=5)
    acls, heads = asked(stub)
    assert acls <= len(first.objects) / 5
    assert heads <= len(first.objects) / 5
    assert_like(night, live)
    assert auditor.check_run(night.folder).exit_code == 0
    again = await asyncio.to_thread(auditor.judge_run, night.folder)
    assert again.summary is not None
    assert again.summary.kept.acl.run == night.summary["kept"]["acl"]["run"] > 0
    assert list(again.summary.not_looked_at).count(night.summary["not_looked_at"][-1]) == 1


async def test_interrupted_night_goes_on_with_what_is_kept(
    stub: StubServer, filled: StubBucket, tmp_path: Path
) -> None:
    nights = Nights(stub, tmp_path / "kept", only=("O02", "E01"), part_lines=7, **settings(keep="acl=1d,head=90d"))
    await nights.night()
    filled.put("k001", b"new", sse="AES256")
    live = await nights.live(tmp_path / "live")
    cut = await nights.night(days=0, max_calls=30)
    assert not cut.summary["complete"]
    begun = asked(stub)
    whole = await nights.night(resume=cut.summary["run"])
    assert whole.summary["complete"]
    ended = asked(stub)
    assert begun[0] + ended[0] == NUMBER
    assert begun[0] > 0 < ended[0]
    assert 1 <= begun[1] + ended[1] < NUMBER / 5
    assert_like(whole, live)


async def test_run_that_is_resumed_after_days_asks_what_became_due(
    stub: StubServer, filled: StubBucket, tmp_path: Path
) -> None:
    nights = Nights(stub, tmp_path, only=("O02", "E01"), **settings(keep="acl=1d,head=11d"))
    await nights.night()
    cut = await nights.night(days=9.5, max_calls=30)
    assert not cut.summary["complete"]
    assert asked(stub)[1] < len(cut.objects)
    whole = await nights.night(resume=cut.summary["run"])
    assert (whole.summary["complete"], asked(stub)[1]) == (True, NUMBER - len(cut.objects))


def damage(bucket: StubBucket, folder: Path) -> None:
    part = sorted((folder / "objects").iterdir())[1]
    part.write_bytes(part.read_bytes() + b"\0")


CHANGES: Final[dict[str, Callable[[StubBucket, Path], object]]] = {
    "a part that differs from the seal": damage,
    "no seal": lambda bucket, folder: (folder / "seal.json").unlink(),
    "another owner": lambda bucket, folder: setattr(bucket, "owner", STRANGER),
    "a block that cannot be read": lambda bucket, folder: bucket.odd.update(GetPublicAccessBlock=Odd.DENIED),
}


async def test_run_that_cannot_be_trusted_keeps_no_acl(stub: StubServer, filled: StubBucket, tmp_path: Path) -> None:
    for name, change in CHANGES.items():
        filled.owner = OWNER
        nights = Nights(stub, tmp_path / name, only=("O02",), part_lines=20, **settings(**MONTH))
        first = await nights.night()
        change(filled, first.folder)
        assert (await nights.night()).summary["complete"]
        assert asked(stub)[0] == NUMBER, name
    await nights.night()
    assert asked(stub)[0] == NUMBER, "the block could not be read in both nights"


async def test_public_grants_that_a_block_hid_are_seen_once_it_is_off(
    stub: StubServer, filled: StubBucket, tmp_path: Path
) -> None:
    filled.public_access_block = PublicAccessBlock(ignore_public_acls=True)
    nights = Nights(stub, tmp_path / "kept", only=("O02", "E01"), **settings(**MONTH))
    assert (await nights.night()).summary["verdicts"]["exposed"] == 0
    await nights.night()
    assert asked(stub)[0] < NUMBER / 5
    filled.public_access_block = PublicAccessBlock()
    live = await nights.live(tmp_path / "live")
    night = await nights.night()
    assert asked(stub)[0] == NUMBER
    assert asked(stub)[1] < NUMBER / 5
    assert night.summary["verdicts"]["exposed"] == NUMBER / 5
    assert_like(night, live)


async def test_denied_call_for_a_due_fact_is_a_hole_and_never_the_old_fact(
    stub: StubServer, filled: StubBucket, tmp_path: Path
) -> None:
    nights = Nights(stub, tmp_path, only=("O02", "E01"), **settings(keep="acl=1d,head=90d"))
    await nights.night()
    filled.objects.versions("k001")[0].deny.add("acl")
    night = await nights.night()
    assert night.line("k001")["acl"] == {"unread": {"action": "GetObjectAcl", "code": "AccessDenied"}}
    assert night.line("k001")["verdict"] == "unknown"
    assert night.code == 4
