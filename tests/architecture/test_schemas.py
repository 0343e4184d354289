"""The JSON Schemas hold for real runs: plain, with versions, faulted, masked, excepted, hashed, and with odd keys."""

from __future__ import annotations

import asyncio
import copy
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from jsonschema import Draft202012Validator
from msgspec.structs import replace

from auditor.aio.stop import Stop
from auditor.cli.main import main
from auditor.config.settings import event_settings
from auditor.errors import UsageError
from auditor.hashing.queue.message import HashTask, encode, pack
from auditor.lambdas.event import EVENT_TARGET, VERIFY_TARGET, read_event
from auditor.ledger import open_ledger
from auditor.ledger.manifests.export import export_history
from auditor.model.access import Verdict
from auditor.model.bucket import BUCKET_OWNER_ENFORCED, PublicAccessBlock
from auditor.model.exception import ExceptionEntry
from auditor.model.target import Target
from tests.audit.test_changes import two_nights
from tests.support.audit_runs import Result, audit
from tests.support.divided_runs import Divided
from tests.support.odd_keys import ODD_KEYS
from tests.support.schemas import check_folder, faults, lines_in, load, valid
from tests.support.servers.clients import BUCKET
from tests.support.servers.fixtures import stub_of
from tests.support.servers.samples import SAMPLES, sample_bucket, sample_kind
from tests.support.servers.stub import StubServer
from tests.support.servers.stub_faults import VANISH, on_keys
from tests.support.servers.world import Odd, StubBucket, World
from tests.support.verification import make_bench
from tools.schemas.files import SCHEMAS

COUNT: Final = 60
RUN: Final = "20260102T030405Z-0a1b2c"


@pytest.fixture
def samples(stub: StubServer) -> StubBucket:
    """The stub's bucket with objects of every kind, odd keys first."""
    stub.world.buckets[BUCKET] = sample_bucket(COUNT)
    return stub.world.buckets[BUCKET]


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[StubServer, Result]]:
    """Such a bucket, of which an object is deleted after it was listed, and its audit."""
    with stub_of(World()) as server:
        server.world.buckets[BUCKET] = sample_bucket(COUNT)
        gone = next(key for key in server.world.buckets[BUCKET].objects.keys if key.startswith("plain/"))
        server.faults.append(on_keys(lambda key: key == gone, VANISH))
        yield server, asyncio.run(audit(server, tmp_path_factory.mktemp("audited")))


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> tuple[Result, Result]:
    """Two audits of a bucket that changed between them, with exceptions."""
    until = (datetime.now(UTC) + timedelta(300)).date().isoformat()
    entry = ExceptionEntry("public", "web", until, prefix="open/", verdict=Verdict.EXPOSED, audience="anyone")
    entries = (entry, replace(entry, prefix="none/", until="2026-01-01"))
    with stub_of(World()) as server:
        out = tmp_path_factory.mktemp("nights")
        return asyncio.run(two_nights(server, out, engine="direct", exceptions=entries))


@pytest.fixture(scope="module")
def result(audited: tuple[StubServer, Result]) -> Result:
    return audited[1]


@pytest.fixture(scope="module")
def unread(result: Result) -> dict[str, Any]:
    """The line of an object whose ACL was not read."""
    line = next(line for line in result.objects if "unread" in line["acl"] and line["outcome"] == "undecided")
    assert faults("object-line", line) == []
    return line


def test_each_schema_is_one_of_the_draft_and_speaks_of_the_file_and_not_of_the_code() -> None:
    code = r"\bNone\b|\.text\b|_dict\b|NotStored|StrEnum|cache|__|[a-z]\(\)|FILES|releases"
    for one in SCHEMAS:
        schema = load(one.name)
        Draft202012Validator.check_schema(schema)
        text = json.dumps(schema)
        assert [name for name in schema.get("$defs", {}) if f'"#/$defs/{name}"' not in text] == [], one.name
        described = re.findall(r'"description": "((?:[^"\\]|\\.)*)"', text)
        assert [words for words in described if re.search(code, words)] == [], one.name


def test_published_schemas_are_those_of_the_list() -> None:
    folder = Path("docs/schemas")
    assert {path.name for path in folder.glob("*.json")} == {f"{one.name}.schema.json" for one in SCHEMAS}


class TestRunFolders:
    def test_objects_of_every_kind_and_keys_of_every_form(self, result: Result) -> None:
        counts = check_folder(result.folder)
        assert counts["objects"] == COUNT
        assert counts["undecided"] == result.coverage["undecided"] > 0
        assert result.coverage["vanished"] == 1
        assert counts["findings"] > 0
        assert {line["key"] for line in result.objects} >= set(list(ODD_KEYS.values())[:COUNT])

    async def test_versions_and_delete_markers(self, stub: StubServer, bucket: StubBucket, tmp_path: Path) -> None:
        bucket.put("before versioning", b"null")
        bucket.versioning = "Enabled"
        for number in range(30):
            bucket.put(f"key {number % 10}", b"x", **SAMPLES[sample_kind(number)])
        bucket.delete("key 1")
        assert check_folder((await audit(stub, tmp_path, versions=True)).folder)["objects"] == 31

    async def test_run_of_which_a_range_has_not_begun(
        self, stub: StubServer, samples: StubBucket, tmp_path: Path
    ) -> None:
        run = Divided(stub, tmp_path)
        plan = await run.begin(3)
        await run.ranges([one.id for one in plan.ranges[1:]])
        await run.combine()
        counts = check_folder(run.folder)
        assert counts["checkpoint/[0-9]*.json"] == counts["checkpoint/parts-*.json"] == len(plan.ranges) - 1 > 1

    @pytest.mark.parametrize("case", ["block", "ownership", "denied", "stopped"])
    async def test_settings_that_mask_or_cannot_be_read_and_a_run_that_was_stopped(
        self, stub: StubServer, samples: StubBucket, tmp_path: Path, case: str
    ) -> None:
        settings: dict[str, Any] = {"keep_metadata": True}
        samples.policy, samples.policy_is_public = json.dumps(policy("plain/*")), True
        if case == "block":
            samples.public_access_block = PublicAccessBlock(True, True, True, True)
            settings["level"] = "exposure"
        elif case == "ownership":
            samples.ownership = BUCKET_OWNER_ENFORCED
        elif case == "denied":
            for operation in ("GetBucketPolicy", "GetPublicAccessBlock", "GetBucketAcl", "GetBucketEncryption"):
                samples.odd[operation] = Odd.DENIED
        else:
            settings |= {"max_calls": 20, "part_lines": 5}
        result = await audit(stub, tmp_path, **settings)
        assert (result.summary["verdicts"]["masked"] > 0) is (case == "block")
        assert bool(result.summary["rules_undecided"]) is (case == "denied")
        assert (result.summary["resume"] is not None) is (case == "stopped")
        check_folder(result.folder)

    async def test_ledger_with_objects_that_are_left_and_routed(
        self, stub: StubServer, samples: StubBucket, tmp_path: Path
    ) -> None:
        samples.put("large", b"x" * 5000)
        async with open_ledger(f"sqlite:{tmp_path / 'digests.db'}") as ledger:
            result = await audit(stub, tmp_path / "out", ledger=ledger, batch_over=4000)
        assert check_folder(result.folder)["routed"] == result.summary["hashing"]["routed"]["objects"] > 0

    def test_exceptions_and_changes_since_the_last_run(self, nights: tuple[Result, Result]) -> None:
        for result in nights:
            assert result.summary["excepted"]["verdicts"]["exposed"] == 20
            check_folder(result.folder)
        assert nights[1].summary["changes"]["against"] is not None


class TestUnreadFacts:
    """A line of an object whose ACL was not read cannot pass for one of an object whose ACL was read."""

    def test_it_is_not_audited_and_not_called_clean(self, unread: dict[str, Any]) -> None:
        code = {"action": "GetObjectAcl", "code": "AccessDenied"}
        acls: list[Any] = [
            {"owner": "x", "grants": []},
            {"grants": []},
            {},
            None,
            {"skipped": "not needed"},
            {"unread": code, "owner": "x", "grants": []},
            {"unread": {"action": "GetObjectAcl"}},
            {"skipped": "not needed", "unread": code},
        ]
        changes: list[dict[str, Any]] = [{"outcome": "audited"}, {"outcome": "vanished"}]
        changes += [{"acl_state": "read"}, {"acl_state": "skipped"}, {"public_grant": False}, {"public": False}]
        for change in [*changes, *({"acl": acl} for acl in acls)]:
            assert faults("object-line", {**unread, **change}) != [], change

    def test_it_has_a_fact_in_the_list_of_unread_ones(self) -> None:
        line: dict[str, Any] = {"key": "k", "version_id": None, "unread": [], "rules": []}
        assert faults("undecided-line", line) == ["$.unread: [] should be non-empty"]

    def test_unread_fact_of_the_bucket_is_not_a_value(self) -> None:
        schema = load("run")
        fact = {**schema["$defs"]["BucketFacts"]["properties"]["public_access_block"], "$defs": schema["$defs"]}
        off = dict.fromkeys(
            ("block_public_acls", "ignore_public_acls", "block_public_policy", "restrict_public_buckets"), False
        )
        unread = {"unread": {"action": "GetPublicAccessBlock", "code": "AccessDenied"}}
        check = Draft202012Validator(fact).is_valid
        assert [check(off), check(unread), check({**off, **unread}), check({}), check(None)] == [
            *(True, True, False, False, False)
        ]


def test_each_member_of_a_real_file_and_line_counts(audited: tuple[StubServer, Result], tmp_path: Path) -> None:
    """The schemas notice a member that is missing, is new, or is of another type."""
    stub, result = audited
    stopped = asyncio.run(audit(stub, tmp_path, max_calls=40))
    files = {
        "run": result.folder / "run.json",
        "seal": result.folder / "seal.json",
        "checkpoint": stopped.folder / "checkpoint" / "00000.json",
    }
    read = {name: json.loads(path.read_bytes()) for name, path in files.items()}
    values = {**read, "summary": result.summary, "object-line": result.line("plain/0000059.txt")}
    for name, value in values.items():
        assert faults(name, value) == []
        assert faults(name, {**value, "other": 1}) != []
        for member in value:
            other = copy.deepcopy(value)
            del other[member]
            assert (faults(name, other) == []) is (name == "checkpoint" and member == "rollups"), (name, member)
            assert faults(name, {**value, member: 0.5}) != [] or member == "seconds", (name, member)


def policy(keys: str, bucket: str = BUCKET) -> dict[str, Any]:
    statement = {"Sid": "Open", "Effect": "Allow", "Principal": "*", "Action": "s3:GetObject"}
    return {"Version": "2012-10-17", "Statement": [{**statement, "Resource": f"arn:aws:s3:::{bucket}/{keys}"}]}


class TestAnswersOfCommands:
    def test_diff_what_if_and_export(
        self, nights: tuple[Result, Result], tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        first, second = nights
        runs = [str(first.folder), str(second.folder)]
        assert main(["diff", *runs, "--format", "json"]) == 0
        valid("diff", json.loads(capsys.readouterr().out))
        assert main(["diff", *runs, "--format", "jsonl"]) == 0
        assert valid("diff-line", *map(json.loads, capsys.readouterr().out.splitlines())) > 100
        assert main(["export", runs[1], "--format", "jsonl"]) == 0
        assert valid("export-line", *map(json.loads, capsys.readouterr().out.splitlines())) > 100
        assert main(["export", runs[1], "--format", "json"]) == 0
        valid("summary", json.loads(capsys.readouterr().out))

        (tmp_path / "policy.json").write_text(json.dumps(policy("quiet/*")))
        keys = tmp_path / "keys.jsonl"
        change = ["--policy", str(tmp_path / "policy.json"), "--keys", str(keys)]
        assert main(["what-if", runs[1], *change, "--format", "json"]) == 4
        valid("what-if", json.loads(capsys.readouterr().out))
        assert valid("what-if-line", *lines_in(keys)) > 50

        again = ["judge", runs[1], "--out", str(tmp_path / "again"), "--format", "json"]
        assert main(again) == 4
        judged = json.loads(capsys.readouterr().out)
        valid("summary", judged)
        assert check_folder(Path(judged["out"]))["objects"] == second.coverage["listed"]

    def test_fix_kit_explain_plan_check_and_hash(
        self, audited: tuple[StubServer, Result], tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        stub, out = audited[0], str(audited[1].folder)
        stub.put(BUCKET, "plain/odd\n", b"x", acl="public-read")
        live = ["--endpoint-url", stub.url, "--format", "json"]
        for name, code, arguments in (
            ("fix-kit", 4, ["fix-kit", out, "--out", str(tmp_path / "kit"), "--format", "json"]),
            ("explanation", 0, ["explain", f"s3://{BUCKET}/plain/odd\n", *live]),
            ("explanation", 0, ["explain", f"s3://{BUCKET}/plain/0000059.txt", "--run", out, "--format", "json"]),
            ("inventory", 0, ["inventory", f"s3://{BUCKET}", "--format", "json"]),
            ("plan", 0, ["plan", f"s3://{BUCKET}", "--ranges", "4", "--out", str(tmp_path), *live]),
            ("plan", 0, ["plan", f"s3://{BUCKET}", "--listing", *live]),
            ("check", 0, ["check", out, "--format", "json"]),
            ("estimate", 0, ["estimate", f"s3://{BUCKET}", *live]),
            ("hash", 4, ["hash", f"s3://{BUCKET}", "--ledger", f"sqlite:{tmp_path / 'digests.db'}", *live]),
        ):
            assert main(arguments) == code, arguments
            answer = json.loads(capsys.readouterr().out)
            valid(name, answer)
            assert name != "fix-kit" or answer["jobs"]

    def test_target_that_failed(
        self, stub: StubServer, bucket: StubBucket, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        bucket.put("k")
        targets = [f"s3://{BUCKET}", "s3://no-such-bucket"]
        assert main(["audit", *targets, "--format", "json", "--endpoint-url", stub.url, "--out", str(tmp_path)]) == 4
        lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        for line in lines:
            valid("failed" if "failed" in line else "summary", line)
        assert ["failed" in line for line in lines].count(True) == 1

    async def test_verification(self, stub: StubServer, bucket: StubBucket, tmp_path: Path) -> None:
        async with make_bench(stub, tmp_path) as bench:
            same, damaged, gone = (bench.put(key, b"data") for key in ("same", "damaged", "gone"))
            cold = bench.put("cold", b"data", storage_class="GLACIER")
            await bench.recorded(same, damaged, gone, cold)
            bucket.objects.remove("gone")
            bench.put("damaged", b"DATA", etag=damaged.etag, version_id=damaged.version_id)
            for key in ODD_KEYS.values():
                bench.put(key, b"new")
            found = await bench.verify(grace=0.0)
            assert found.outcomes.keys() >= {"match", "mismatch", "missing", "new", "archived"}
            valid("verify-summary", found.summary)
            valid("verify-result", {"runs": [found.summary]})
            assert valid("verify-line", *found.documents) == len(ODD_KEYS) + 4
            written: list[bytes] = []
            await export_history(bench.ledger, Target(BUCKET), "json-lines", written.append)
            assert valid("history-line", *map(json.loads, b"".join(written).splitlines())) > 4
            stop = Stop()
            stop.set("asked to")
            stopped = await bench.verify(stop=stop)
            assert stopped.summary["resume"] is not None
            valid("verify-summary", stopped.summary)


class TestQueueAndFunctions:
    def test_messages_of_odd_keys_and_of_a_sequencer(self) -> None:
        tasks = [HashTask(key, "null", "etag", 3) for key in ODD_KEYS.values()]
        event = replace(tasks[0], sequencer="0A1B", hops=3, attempts=2)
        bodies = [encode(one) for one in pack(RUN, BUCKET, ("sha256", "md5"), [*tasks, event, *tasks * 3])]
        assert valid("queue-message", *map(json.loads, bodies)) > 1

    def test_event_has_what_the_function_takes(self) -> None:
        for function, fields in (("audit", EVENT_TARGET), ("verify", VERIFY_TARGET - {"all_buckets"})):
            members = load(f"{function}-event")["oneOf"][0]["properties"]
            assert members.keys() == fields | event_settings(function)

    def test_event_is_valid_where_the_function_takes_it(self) -> None:
        events: list[dict[str, Any]] = [
            {},
            {"bucket": BUCKET},
            {"all_buckets": True},
            {"all_buckets": True, "start": RUN},
            {"all_buckets": True, "run": RUN},
            {"all_buckets": True, "prefix": "a/"},
            {"all_buckets": True, "bucket": BUCKET},
            {"all_buckets": False, "bucket": BUCKET},
            {"run": RUN},
            {"bucket": BUCKET, "prefix": "a/", "start_after": None, "engine": "boto3", "max_rate": "unlimited"},
            {"bucket": BUCKET, "only": ["O01"], "fail_on": "new:high", "versions": True, "semantics": "auto"},
            {"source": "aws.events", "detail-type": "Scheduled Event", "time": "2026-01-02T03:04:05Z"},
            {"prefix": "a/"},
            {"bucket": BUCKET, "colour": "red"},
            {"bucket": BUCKET, "engine": "curl"},
            {"bucket": BUCKET, "hop": 1},
            {"bucket": BUCKET, "concurrency": 0},
            {"bucket": ""},
            {"source": "aws.s3", "detail-type": "Object Created"},
        ]
        for event in events:
            try:
                read_event(event, {"AUDITOR_BUCKETS": BUCKET})
                taken = True
            except UsageError:
                taken = False
            assert (faults("audit-event", event) == []) is taken, event

    def test_answers(self, result: Result) -> None:
        valid("audit-result", {"runs": [result.summary]}, {"runs": [], "left": ["run X is complete"]})
        valid("hashing-result", {"batchItemFailures": [{"itemIdentifier": "1"}]}, {"batchItemFailures": []})
        valid("renew-result", {"batchItemFailures": [{"itemIdentifier": "1"}]}, {"batchItemFailures": []})
        assert faults("audit-result", {"runs": [{**result.summary, "verdicts": {}}]}) != []
