"""Verifying a bucket: each kind of harm is found as what it is, and nothing else is."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final

import pytest
from msgspec.structs import replace

from auditor.config.values import outcomes
from auditor.errors import RunError, UsageError
from auditor.ledger.base import Entry
from auditor.model.exception import ExceptionEntry
from auditor.model.target import Target
from auditor.verify.due import DAY
from tests.support.fakes.ledger import Hooked, versions_of
from tests.support.servers.clients import BUCKET
from tests.support.servers.stub import StubServer
from tests.support.servers.stub_faults import TRUNCATED, Fault, error, on_keys
from tests.support.servers.world import StubBucket, StubObject
from tests.support.verification import LONG_AGO, Bench, days_ago, entry, expectation, now

accepting = partial(ExceptionEntry, owner="me", until="2999-12-31")

SHA256_OF_DATA: Final = hashlib.sha256(b"data").hexdigest()


def flip(item: StubObject, place: int) -> None:
    """One bit of one byte, behind the server's back: its ETag, size and version stay."""
    body = bytearray(item.read())
    body[place] ^= 1
    item.body = bytes(body)


async def test_byte_flipped_in_one_of_many_objects_is_found_and_only_that_one(bench: Bench) -> None:
    items = [bench.put(f"k/{number:03}", f"body {number}".encode() * 9) for number in range(120)]
    await bench.recorded(*items)
    flip(items[77], 17)
    found = await bench.verify(engine="direct", concurrency=32)
    assert found.outcomes == {"match": 119, "mismatch": 1}
    assert [line for line in found.lines if line[0] != "="] == ["* k/077"]
    assert found.code == 3
    detail = found.detail("k/077")
    assert detail["recorded"] == hashlib.sha256(b"body 77" * 9).hexdigest()
    assert detail["found"] == hashlib.sha256(items[77].read()).hexdigest()
    (noted,) = await bench.noted("k/077")
    assert noted.what == "mismatch"


async def test_each_kind_of_harm_is_told_apart(bench: Bench, bucket: StubBucket, stub: StubServer) -> None:
    names = ["archived", "changed", "deleted", "denied", "dear", "flipped", "frozen", "missing", "shorter", "sound"]
    names += ["sse-c", "truncated"]
    items = {name: bench.put(name, f"body of {name}".encode()) for name in names}
    await bench.recorded(*items.values())
    items["archived"].storage_class = "GLACIER"
    items["dear"].storage_class = "STANDARD_IA"
    items["denied"].deny = {"get"}
    items["sse-c"].sse_c = True
    flip(items["flipped"], 0)
    items["shorter"].body, items["shorter"].size = b"body", 4
    frozen = error(403, "InvalidObjectState")  # archived after the listing
    stub.faults = [
        on_keys("truncated".__eq__, TRUNCATED, {"GetObject"}),
        on_keys("frozen".__eq__, frozen, {"GetObject"}),
    ]
    bench.put("changed", b"another body")
    bench.put("new", b"")
    bucket.objects.remove("missing")
    bucket.objects.remove("deleted")
    await bench.deleted("deleted")
    found = await bench.verify()
    assert found.lines == [
        *("a archived", "~ changed", "% changed", "$ dear", "x deleted", "! denied", "* flipped", "a frozen"),
        *("- missing", "+ new", "* shorter", "= sound", "! sse-c", "* truncated"),
    ]
    assert found.code == 4
    assert {item["code"] for item in found.summary["unreadable"]} == {"AccessDenied", "SSE-C"}
    assert (found.summary["listed"], found.summary["ledger_only"]) == (11, 3)
    assert found.summary["read"]["objects"] == 2, "of the flipped and the sound one alone every byte came"
    assert found.detail("truncated") == {"algorithm": "size", "recorded": "17", "code": "SizeDiffers"}
    assert (found.detail("dear"), found.detail("frozen")) == (
        {"storage_class": "STANDARD_IA"},
        {"storage_class": "STANDARD"},
    )
    # What is changed or new was not read, and the ledger has no new digest.
    assert not [call for call in stub.requests if call.operation == "GetObject" and call.key in {"changed", "new"}]
    assert len(await versions_of(bench.ledger, BUCKET, "changed")) == 1
    quiet = [await bench.noted(key) for key in ("archived", "dear", "deleted", "frozen", "new")]
    assert quiet == [[]] * 5, "what is no news is not noted"


class TestAlgorithms:
    async def test_all_are_compared_or_the_chosen_ones_where_the_ledger_has_them(self, bench: Bench) -> None:
        await bench.recorded(bench.put("all"), algorithms=("sha256", "md5", "sha1"))
        assert (await bench.verify()).lines == ["= all"]
        assert {event.detail["algorithm"] for event in await bench.noted("all")} == {"sha256", "md5", "sha1"}
        (version,) = await versions_of(bench.ledger, BUCKET, "all")
        for known in version.digests.values():
            assert known.recorded_at == LONG_AGO < (known.verified_at or "")
        both, one = bench.put("both"), bench.put("one")
        await bench.recorded(both, algorithms=("sha256", "md5"))
        await bench.recorded(one, algorithms=("sha1",))
        found = await bench.verify(compared=["md5"])
        assert found.outcomes == {"match": 3}
        assert [event.detail["algorithm"] for event in await bench.noted("both")] == ["md5"]
        assert [event.detail["algorithm"] for event in await bench.noted("one")] == ["sha1"]


class TestExpectations:
    async def test_new_object_that_a_manifest_names_is_read_compared_and_recorded(self, bench: Bench) -> None:
        """An object that the ledger knows must be what the manifest says too."""
        bench.put("right")
        bench.put("wrong", b"dara")
        await bench.recorded(bench.put("late", b"recorded too late"))
        names = {"gone": b"x", "late": b"as it once was", "right": b"data", "wrong": b"data"}
        await bench.expected(*(expectation(key, body) for key, body in names.items()))
        found = await bench.verify()
        assert found.lines == ["- gone", "* late", "= right", "* wrong"]
        assert found.detail("wrong")["origin"] == "manifest-sha256.txt"
        (right,) = await versions_of(bench.ledger, BUCKET, "right")
        assert right.digests["sha256"].digest == SHA256_OF_DATA
        assert not await versions_of(bench.ledger, BUCKET, "wrong")


class TestRecord:
    async def test_new_and_changed_objects_are_recorded_when_asked(self, bench: Bench) -> None:
        await bench.recorded(bench.put("changed", b"old"))
        bench.put("changed", b"data")
        bench.put("new", b"data")
        first = await bench.verify(record=True)
        assert first.lines == ["~ changed", "% changed", "+ new"]
        assert first.summary["recorded"] == 2
        second = await bench.verify()
        assert second.lines == ["= changed", "= new"]

    async def test_digest_that_another_process_records_meanwhile_is_a_mismatch(self, bench: Bench) -> None:
        item = bench.put("key")

        class Overtaken(Hooked):
            async def record(self, entry: Entry) -> bool:
                await self.inner.record(replace(entry, digests={"sha256": "aa" * 32}))
                return await self.inner.record(entry)

        found = await Bench(bench.stub, Overtaken(bench.ledger), bench.out).verify(record=True)
        assert (found.lines, found.code, found.detail(item.key)) == (["* key"], 3, {"code": "DigestConflict"})
        assert found.summary["recorded"] == 0


class TestGrace:
    @pytest.mark.parametrize(
        ("minutes", "expected"), [(5, {"in_flight": 2}), (16, {"changed": 1, "lost": 1, "new": 1})]
    )
    async def test_young_objects_may_be_on_their_way(
        self, bench: Bench, minutes: int, expected: dict[str, int]
    ) -> None:
        await bench.recorded(bench.put("changed", b"old"), bench.put("sound"))
        written = now() - timedelta(minutes=minutes)
        bench.put("changed", b"new", last_modified=written)
        bench.put("new", b"new", last_modified=written)
        found = await bench.verify()
        assert found.outcomes == {"match": 1, **expected}
        assert found.code == (3 if "lost" in expected else 0)

    async def test_clock_that_ran_years_ahead_excuses_nothing(self, bench: Bench, bucket: StubBucket) -> None:
        await bench.ledger.record(replace(entry(bench.put("gone")), hashed_at="2099-01-01T00:00:00Z"))
        bucket.objects.remove("gone")
        bench.put("new", last_modified=datetime(2099, 1, 1, tzinfo=UTC))
        assert (await bench.verify()).lines == ["- gone", "+ new"]

    async def test_grace_longer_than_the_calendar(self, bench: Bench) -> None:
        await bench.recorded(bench.put("known"))
        bench.put("new")
        assert (await bench.verify(grace=1e15)).lines == ["= known", "> new"]

    async def test_what_was_recorded_while_it_runs_is_not_missing(self, bench: Bench) -> None:
        at = now().strftime("%Y-%m-%dT%H:%M:%SZ")
        digests = {"sha256": SHA256_OF_DATA}
        await bench.ledger.record(
            Entry(bucket=BUCKET, key="key", version_id=None, etag="e", size=4, digests=digests, hashed_at=at)
        )
        found = await bench.verify()
        assert (found.lines, found.code) == (["> key"], 4)
        await bench.recorded(bench.put("sound"))
        assert (await bench.verify()).code == 0

    async def test_changed_between_listing_and_reading(
        self, bench: Bench, bucket: StubBucket, stub: StubServer
    ) -> None:
        await bench.recorded(bench.put("deleted"), bench.put("overwritten"))

        def change(operation: str, key: str, nth: int) -> None:
            if operation == "GetObject" and key == "overwritten":
                bench.put(key, b"overwritten")
            elif operation == "GetObject" and nth == 1:
                bucket.objects.remove(key)

        stub.faults = [change]
        assert (await bench.verify()).lines == ["> deleted", "> overwritten"]

    async def test_listed_object_that_is_not_there_is_unreadable_and_not_in_flight(
        self, bench: Bench, stub: StubServer
    ) -> None:
        await bench.recorded(bench.put("key"))
        stub.faults = [on_keys("key".__eq__, error(404, "NoSuchKey"), {"GetObject"})]
        found = await bench.verify()
        assert (found.lines, found.code, found.detail("key")) == (["! key"], 4, {"code": "Vanished"})
        lists = stub.count("ListObjectsV2")

        def refuse(operation: str, key: str, nth: int) -> Fault | None:
            again = operation == "ListObjectsV2" and stub.count("ListObjectsV2") > lists + 1
            return error(403, "AccessDenied") if again else None

        stub.faults.append(refuse)
        found = await bench.verify()
        assert (found.lines, found.detail("key")) == (["! key"], {"code": "AccessDenied"})


class TestVersions:
    async def test_each_version_stands_alone(self, bench: Bench, bucket: StubBucket) -> None:
        bucket.versioning = "Enabled"
        old, lost, new = bench.put("key", b"1"), bench.put("key", b"2"), bench.put("key", b"3")
        expired, current = bench.put("other", b"1"), bench.put("other", b"2")
        await bench.recorded(old, lost, new, expired, current)
        for item in (lost, expired):
            assert item.version_id is not None
            bucket.objects.remove(item.key, item.version_id)
        await bench.deleted("other", expired.version_id)
        flip(old, 0)
        bench.put("key", b"4")
        found = await bench.verify(versions=True)
        lines = [line.split("\t")[0] for line in found.lines]
        assert lines == ["~ key", "= key", "* key", "- key", "= other", "x other"]
        assert found.lines[3].endswith(f"\t{lost.version_id}")

    @pytest.mark.parametrize("known", [True, False])
    async def test_key_that_a_manifest_names_is_missing_when_its_current_version_is_a_delete_marker(
        self, bench: Bench, bucket: StubBucket, known: bool
    ) -> None:
        bucket.versioning = "Enabled"
        item = bench.put("key")
        if known:
            await bench.recorded(item)
        await bench.expected(expectation("key", b"data"))
        bucket.delete("key")
        found = await bench.verify(versions=True)
        assert found.lines == [f"{'=' if known else '+'} key\t{item.version_id}", "- key"]
        assert (found.code, found.summary["delete_markers"]) == (3 if known else 4, 1)
        await bench.deleted("key", "the marker")
        assert (await bench.verify(versions=True)).lines[1] == "x key"

    async def test_each_version_has_its_own_turn(self, bench: Bench, bucket: StubBucket) -> None:
        bucket.versioning = "Enabled"
        await bench.recorded(*(bench.put("key", b"%d" % number) for number in range(30)), hashed_at=days_ago(4))
        found = await bench.verify(versions=True, percent=10.0)
        assert min(found.outcomes["match"], found.outcomes["not_due"]) > 2

    async def test_limit_ends_it_after_the_last_version_of_a_key(self, bench: Bench, bucket: StubBucket) -> None:
        """The limit is reached inside of the first page, and the key's versions go on after it."""
        bucket.versioning = "Enabled"
        items = [bench.put("many", b"%d" % number) for number in range(1005)]
        bench.put("next")
        await bench.recorded(*items[-3:])
        found = await bench.verify(versions=True, max_calls=2, concurrency=1)
        assert (found.outcomes, found.code) == ({"match": 3, "new": 1002}, 4)
        assert found.summary["resume"] == {"reason": "the limit of --max-calls was reached", "start_after": "many"}


class TestCost:
    async def test_classes_whose_reading_costs_are_left_unless_accepted(self, bench: Bench, stub: StubServer) -> None:
        classes = ["GLACIER_IR", "INTELLIGENT_TIERING", "ONEZONE_IA", "STANDARD_IA"]
        size = 128 * 1024
        await bench.recorded(*(bench.put(name, bytes(size), storage_class=name) for name in classes), bench.put("free"))
        restored = bench.put("restored", storage_class="GLACIER", restored=True)
        await bench.recorded(restored, bench.put("small", b"12345", storage_class="INTELLIGENT_TIERING"))
        found = await bench.verify()
        assert found.lines == [*(f"$ {name}" for name in classes), "= free", "= restored", "= small"]
        assert found.summary["left_for_cost"] == {name: {"objects": 1, "bytes": size} for name in classes}
        assert stub.count("GetObject") == 3
        assert (await bench.verify(accept_cost=True)).outcomes == {"match": 7}


class TestWhatIsDue:
    async def test_not_due_objects_are_counted_and_what_a_listing_tells_is_told(
        self, bench: Bench, bucket: StubBucket, stub: StubServer
    ) -> None:
        items = [bench.put(f"k{number:03}") for number in range(200)]
        await bench.recorded(*items, hashed_at=days_ago(1))
        bench.put("k000", b"changed")
        bucket.objects.remove("k001")
        bench.put("l")
        found = await bench.verify(percent=10.0)
        assert sum(found.outcomes.values()) == 202
        assert [line for line in found.lines if line[0] not in "=."] == ["~ k000", "% k000", "- k001", "+ l"]
        assert 5 <= found.outcomes["match"] <= 40
        assert found.outcomes["match"] == stub.count("GetObject")
        assert found.code == 0 or found.outcomes["missing"]

    @pytest.mark.parametrize("limit", [{"max_age": 30 * DAY}, {"percent": 5.0}])
    async def test_objects_that_were_read_too_late_are_counted_and_the_longest_delay_is_said(
        self, bench: Bench, limit: dict[str, Any]
    ) -> None:
        for number, days in enumerate((33, 32, 0)):
            await bench.recorded(bench.put(f"k{number}"), hashed_at=days_ago(days))
        late = (await bench.verify(**limit)).summary["late"]
        assert late["objects"] == 2
        assert late["seconds"] // DAY == (3 if "max_age" in limit else 12)


class TestHoles:
    """Where nothing was compared, or anything due was not read, the run has a hole."""

    async def hole(self, bench: Bench, **settings: Any) -> str:
        found = await bench.verify(**settings)
        assert found.code == 4
        (hole,) = found.summary["holes"]
        return str(hole)

    async def test_empty_bucket_and_wrong_prefix(self, bench: Bench) -> None:
        assert (await bench.verify()).code == 0
        await bench.recorded(bench.put("a/key"))
        assert "nothing was compared: nothing is there" in await self.hole(bench, target=Target(BUCKET, "A/"))
        assert "nothing is there" in await self.hole(bench, target=Target(BUCKET, start_after="b"))
        assert (await bench.verify(target=Target(BUCKET, "A/"), allow_empty=True)).code == 0

    async def test_all_new_or_changed(self, bench: Bench) -> None:
        await bench.recorded(bench.put("changed", b"old"))
        bench.put("changed", b"another")
        bench.put("new")
        hole = await self.hole(bench)
        assert "nothing was compared: the ledger knows none of these objects (1 changed, 1 new)" in hole
        assert (await bench.verify(record=True)).code == 0

    async def test_object_that_was_due_and_not_read(self, bench: Bench) -> None:
        cases: dict[str, dict[str, Any]] = {
            "archived": {"storage_class": "GLACIER"},
            "left_for_cost": {"storage_class": "STANDARD_IA"},
            "SSE-C": {"sse_c": True},
            "AccessDenied": {"deny": {"get"}},
        }
        for code, fields in cases.items():
            key = f"{code}/odd"
            await bench.recorded(bench.put(key, **fields), *(bench.put(f"{code}/sound{number}") for number in range(2)))
            run = partial(bench.verify, target=Target(BUCKET, f"{code}/"))
            assert (await run()).summary["holes"] == [f"1 object due and not read (1 {code})"]
            for accepted in (accepting("known", code=code), accepting("known", prefix=key, action="GetObject")):
                found = await run(exceptions=(accepted,))
                assert (found.code, found.summary["holes"], found.summary["accepted"]) == (0, [], {code: 1})
            other = accepting("other", prefix=f"{code}/sound", action="GetObject")
            assert (await run(exceptions=(other,))).code == 4

    async def test_all_objects_unread_and_all_accepted(self, bench: Bench) -> None:
        await bench.recorded(bench.put("deep", storage_class="DEEP_ARCHIVE"))
        assert await self.hole(bench) == "1 object due and not read (1 archived)"
        accepted = (accepting("tapes", code="archived"),)
        assert (await bench.verify(exceptions=accepted)).code == 0
        bench.put("new")
        assert "nothing was compared" in await self.hole(bench, exceptions=accepted)

    async def test_objects_that_are_not_due_are_no_hole(self, bench: Bench) -> None:
        just_now = days_ago(0)
        await bench.recorded(bench.put("key"), hashed_at=just_now)
        await bench.recorded(bench.put("deep", storage_class="DEEP_ARCHIVE"), hashed_at=just_now)
        found = await bench.verify(max_age=90 * DAY)
        assert (found.outcomes, found.code) == ({"not_due": 2}, 0)

    async def test_owner_accepts_that_a_prefix_is_empty(self, bench: Bench) -> None:
        accepted = accepting("it is a drop box", action="Verify", code="NothingCompared")
        target = Target(BUCKET, "drop/")
        assert (await bench.verify(target=target, exceptions=(accepted,))).code == 0
        assert await self.hole(bench, target=target, exceptions=(accepting("other", action="GetObject"),))


class TestFailOn:
    async def test_named_outcomes_fail(self, bench: Bench, bucket: StubBucket) -> None:
        item = bench.put("flipped")
        await bench.recorded(*(bench.put(key) for key in ("changed", "deleted", "sound")), item)
        flip(item, 0)
        bucket.versioning = "Enabled"
        bench.put("changed", b"another")
        bench.put("new")
        bucket.objects.remove("deleted")
        await bench.deleted("deleted")
        codes = {"missing": 0, "changed": 3, "new": 3, "deleted": 3, "mismatch,missing": 3, "never": 0}
        for fail_on, code in codes.items():
            found = await bench.verify(fail_on_outcomes=outcomes(fail_on, "--fail-on"))
            assert found.outcomes == {"match": 1, "mismatch": 1, "changed": 1, "new": 1, "deleted": 1}
            assert found.code == code, fail_on
        assert (await bench.verify()).code == 3

    def test_other_words_are_refused(self) -> None:
        for value in ("damaged", "", "match", "archived", 3):
            with pytest.raises(UsageError, match=r"^--fail-on is "):
                outcomes(value, "--fail-on")


class TestLoss:
    """In a bucket without versions the bytes that another object replaced are gone. That is told once."""

    async def overwritten(self, bench: Bench, *, told: bool = False) -> None:
        """All objects but one, as ransomware does. told: events had the new ones hashed."""
        await bench.recorded(bench.put("sound"), *(bench.put(f"k{number}", b"%d" % number) for number in range(4)))
        items = [bench.put(f"k{number}", b"encrypted %d" % number) for number in range(4)]
        if told:
            await bench.recorded(*items, hashed_at=days_ago(0.5))

    @pytest.mark.parametrize("told", [False, True])
    async def test_replaced_bytes_are_lost_once(self, bench: Bench, stub: StubServer, told: bool) -> None:
        versions = told
        await self.overwritten(bench, told=told)
        now_are = {"match": 5} if told else {"match": 1, "changed": 4}
        found = await bench.verify(versions=versions)
        assert (found.outcomes, found.code) == ({**now_are, "lost": 4}, 3)
        assert [line.split("\t")[0] for line in found.lines if line[0] == "%"] == [f"% k{n}" for n in range(4)]
        assert (found.summary["listed"], found.summary["ledger_only"]) == (5, 4)
        assert stub.count("HeadObject") == 1
        lost = [event for event in await bench.noted("k0") if event.what == "lost"]
        assert [event.etag for event in lost] == [hashlib.md5(b"0", usedforsecurity=False).hexdigest()]
        again = await bench.verify(versions=versions)
        assert (again.outcomes, again.code) == (now_are, 0)

    async def test_bucket_that_keeps_versions_has_changes_and_no_loss(
        self, bench: Bench, bucket: StubBucket, stub: StubServer
    ) -> None:
        bucket.versioning = "Enabled"
        for number in range(4):
            item = bench.put(f"k{number}", b"%d" % number)
            await bench.ledger.record(replace(entry(item), version_id=None))
        await bench.recorded(bench.put("sound"))
        for number in range(4):
            bench.put(f"k{number}", b"another")
        found = await bench.verify()
        assert (found.outcomes, found.code, stub.count("HeadObject")) == ({"match": 1, "changed": 4}, 0, 1)

    async def test_next_loss_of_a_key_is_told_too(self, bench: Bench) -> None:
        await bench.recorded(bench.put("key", b"first"))
        codes = []
        for body in (b"second", b"third", b"second"):
            item = bench.put("key", body)
            await bench.ledger.record(entry(item, hashed_at=days_ago(0.5)))
            codes += [(await bench.verify()).outcomes.get("lost", 0) for _ in range(2)]
        assert codes == [1, 0, 1, 0, 1, 0]

    async def test_same_bytes_under_another_etag_are_not_lost(self, bench: Bench) -> None:
        """As after an encryption with another key, or in other parts."""
        await bench.recorded(bench.put("key", b"data"))
        item = bench.put("key", b"data", etag="0" * 32 + "-2")
        await bench.recorded(item, hashed_at=days_ago(0.5))
        assert (await bench.verify()).outcomes == {"match": 1}

    async def test_s3_that_does_not_tell_whether_it_keeps_versions_is_a_hole(
        self, bench: Bench, stub: StubServer
    ) -> None:
        await bench.recorded(bench.put("key", b"first"), bench.put("sound"))
        item = bench.put("key", b"second")
        item.deny = {"head"}
        found = await bench.verify()
        assert (found.outcomes, found.code) == ({"changed": 1, "match": 1, "unreadable": 1}, 4)
        item.deny = set()
        stub.faults = [on_keys("key".__eq__, error(404, "NoSuchKey"), {"HeadObject"})]
        found = await bench.verify()
        assert found.outcomes == {"changed": 1, "match": 1}, "it is deleted: the next run looks at the whole key"
        stub.faults = []
        assert (await bench.verify()).outcomes["lost"] == 1

    async def test_loss_that_no_summary_told_is_told_by_the_next_run(self, bench: Bench, stub: StubServer) -> None:
        await self.overwritten(bench)
        bench.put("z")

        def fail(operation: str, key: str, nth: int) -> Fault | None:
            return error(403, "AccountProblem") if operation == "GetObject" and key == "sound" else None

        stub.faults = [fail]
        with pytest.raises(RunError):
            await bench.verify()
        assert not list(bench.out.rglob(".*.tmp"))
        stub.faults = []
        assert (await bench.verify()).outcomes["lost"] == 4


class TestBounds:
    async def test_prefix_and_range_bound_both_sides(self, bench: Bench, bucket: StubBucket) -> None:
        await bench.recorded(*(bench.put(f"{folder}/{name}") for folder in "abc" for name in "123456"))
        for folder in "abc":
            for name in "135":
                bucket.objects.remove(f"{folder}/{name}")
        found = await bench.verify(target=Target(BUCKET, "b/", start_after="b/1", stop_at="b/5"))
        assert found.lines == ["= b/2", "- b/3", "= b/4", "- b/5"]

    async def test_budget_of_calls_ends_it_with_a_hole(self, bench: Bench) -> None:
        await bench.recorded(*(bench.put(f"k{number}") for number in range(9)))
        found = await bench.verify(max_calls=4, concurrency=1)
        assert not found.summary["complete"]
        assert found.code == 4
        assert found.summary["resume"]["start_after"] == found.documents[-1]["key"]
        assert 0 < found.outcomes["match"] < 9
        for number in range(found.outcomes["match"]):
            assert [event.what for event in await bench.noted(f"k{number}")] == ["verified"]


async def test_s3s_own_checksum_that_differs_is_a_mismatch(bench: Bench) -> None:
    wrong: dict[str, Any] = {"checksums": {"SHA256": "A" * 43 + "="}, "checksum_type": "FULL_OBJECT"}
    await bench.recorded(bench.put("key", **wrong))
    found = await bench.verify()
    assert (found.lines, found.detail("key")["origin"]) == (["* key"], "s3")
