"""The public names: what `import auditor` gives, and the examples of docs/python.md."""

from __future__ import annotations

import ast
import asyncio
import gc
import inspect
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import auditor
from auditor.config.settings import SETTINGS
from auditor.errors import RunError, UsageError
from auditor.offline.library import keyword_types
from auditor.progress import Snapshot
from tests.support.paths import ROOT
from tests.support.samples.reports import RUN
from tests.support.servers.stub import StubServer

PAGE = (ROOT / "docs" / "python.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
WORKS = ("audit_bucket", "audit_buckets", "verify_bucket", "hash_bucket")
WITHOUT_STOP = ("explain",)


@pytest.fixture
def bucket(stub: StubServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> StubServer:
    """s3://my-bucket with a public and a private object, reached by the environment alone."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", stub.url)
    monkeypatch.chdir(tmp_path)
    stub.world.add("my-bucket")
    stub.put("my-bucket", "photos/private.jpg", b"x")
    stub.put("my-bucket", "photos/public.jpg", b"xy", acl="public-read")
    return stub


@pytest.fixture
def run(bucket: StubServer) -> auditor.Run:
    """An audit of the bucket."""
    return auditor.audit_bucket("s3://my-bucket", out="runs")


def test_public_names_are_complete_and_no_folders() -> None:
    declared = {
        name.name
        for node in ast.walk(ast.parse((ROOT / "auditor" / "__init__.py").read_text()))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("auditor.")
        for name in node.names
    } - {"version"}
    assert len(set(auditor.__all__)) == len(auditor.__all__)
    assert set(auditor.__all__) == declared == {*dir(auditor)} & declared
    rooms = {path.stem for path in (ROOT / "auditor").iterdir()}
    assert rooms.isdisjoint(auditor.__all__)
    assert all(inspect.getdoc(getattr(auditor, name)) or name == "RULES" for name in auditor.__all__)
    with pytest.raises(AttributeError, match="audit_all"):
        auditor.audit_all  # noqa: B018


def test_importing_the_package_loads_nothing_else_and_leaves_the_environment_alone() -> None:
    code = (
        "import os, sys; before = dict(os.environ); import auditor;"
        "print(dict(os.environ) == before, [name for name in ('asyncio', 'botocore', 'json') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "True []\n"


def test_both_forms_of_a_work_take_the_same_arguments() -> None:
    for work in (*WORKS, *WITHOUT_STOP):
        blocking = inspect.signature(getattr(auditor, work)).parameters
        waiting = inspect.signature(getattr(auditor, f"{work}_async")).parameters
        assert set(waiting) - set(blocking) == ({"stop"} if work in WORKS else set()), work
        assert SETTINGS.keys().isdisjoint(blocking.keys() - {"algorithms"}), work


def test_the_examples_of_the_page_run_in_order(bucket: StubServer, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {"__name__": "example"}
    for example in EXAMPLES:
        exec(compile(example, "docs/python.md", "exec"), names)
    said = capsys.readouterr().out
    assert "True 0 1\n" in said
    assert "O02 photos/public.jpg its ACL lets anyone on the internet read it" in said
    assert "exposed\n" in said
    assert re.search(r"O02 +high +1\n", said)


def test_the_examples_run_in_a_notebook(bucket: StubServer, tmp_path: Path) -> None:
    cells = [example for example in EXAMPLES if "asyncio.run(" not in example]
    done = subprocess.run(
        [sys.executable, "-c", NOTEBOOK],
        env={**os.environ, "IPYTHONDIR": str(tmp_path / "ipython")},
        input=json.dumps(cells),
        capture_output=True,
        text=True,
        check=True,
    )
    shown = json.loads(done.stdout.splitlines()[-1])
    assert shown["text/html"].startswith("<table><tr><th>run</th>")
    assert "<th>exposed</th><td>1</td>" in shown["text/html"]
    assert shown["text/plain"].startswith("Run(")


NOTEBOOK = """
import json, sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
for cell in json.load(sys.stdin):
    shell.run_cell(cell).raise_error()
shown, _ = shell.display_formatter.format(shell.user_ns["run"])
print(json.dumps(shown))
"""


def test_the_frame_of_all_objects_has_flat_columns(bucket: StubServer) -> None:
    bucket.put("my-bucket", "secret", b"x", sse_c=True)
    run = auditor.audit_bucket("s3://my-bucket", out="runs")
    frame = run.frame()
    assert list(frame.key) == ["photos/private.jpg", "photos/public.jpg", "secret"]
    assert list(frame.verdict) == ["private", "exposed", "private"]
    assert list(frame.head_state) == ["read", "read", "unread"]
    assert [frame.head_content_length[0], frame.head_content_length.isna()[2]] == [1, True]
    assert not any(isinstance(value, dict) for column in frame for value in frame[column])
    assert list(run.frame("findings").key.dropna()) == [one.key for one in run.findings() if one.key]
    with pytest.raises(UsageError, match="'undecided' is not a kind of line: give objects or findings"):
        run.frame("undecided")  # type: ignore[arg-type]


def test_a_run_and_a_line_show_themselves(run: auditor.Run) -> None:
    (line,) = run.objects(verdict="exposed")
    assert repr(line) == "ObjectLine('photos/public.jpg', exposed, audience=['anyone'], rules=['O02'])"
    odd = auditor.audit_bucket("s3://my-bucket/photos/<b>", out="runs", allow_empty=True)
    assert "<b>" not in odd._repr_html_()
    assert "photos/&lt;b&gt;" in odd._repr_html_()
    assert Path(odd.report).read_text().startswith("<!DOCTYPE html>")


KEYWORDS = {
    "audit_bucket": "AuditKeywords",
    "audit_buckets": "AuditKeywords",
    "explain": "ExplainKeywords",
    "hash_bucket": "HashKeywords",
    "verify_bucket": "VerifyKeywords",
    "judge_run": "JudgeKeywords",
}


def test_help_lists_every_keyword() -> None:
    for name, keywords in KEYWORDS.items():
        words = inspect.getdoc(getattr(auditor, name)) or ""
        assert "Settings:\n" in words
        missing = [
            one for one in inspect.get_annotations(getattr(keyword_types, keywords)) if f"    {one}: " not in words
        ]
        assert missing == [], name


@pytest.mark.slow
def test_mypy_refuses_a_keyword_that_is_no_setting(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import auditor\n"
        'auditor.audit_bucket("s3://b", max_rate=5, algorithm="md5", trusted={"1" * 12})\n'
        'auditor.audit_bucket("s3://b", max_rte=5)\n'
        'auditor.audit_bucket("s3://b", level="all")\n'
        'auditor.verify_bucket("s3://b", fail_on="mismatch", topic="arn")\n'
    )
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", str(program)], cwd=tmp_path, capture_output=True, text=True
    )
    faults = [line.partition("program.py:")[2] for line in done.stdout.splitlines() if "program.py" in line]
    assert [line.partition(":")[0] for line in faults if " error: " in line] == ["3", "4", "5"]
    assert "max_rte" in faults[0]


def test_the_run_is_what_the_command_line_writes(run: auditor.Run) -> None:
    assert run.summary is not None
    assert run.summary.to_dict() == json.loads(Path(run.place, "summary.json").read_text())
    assert [line.key for line in run.objects()] == ["photos/private.jpg", "photos/public.jpg"]
    assert [line.key for line in run.objects(verdict=auditor.Verdict.EXPOSED)] == ["photos/public.jpg"]
    assert {line.severity for line in run.findings(at_least="high")} == {"high"}
    assert list(run.undecided()) == []
    assert auditor.open_run(Path(run.place)).complete


def test_an_object_is_explained_live_and_from_its_run(bucket: StubServer, run: auditor.Run) -> None:
    uri = "s3://my-bucket/photos/public.jpg"
    (live,) = auditor.explain(uri)
    bucket.forget()
    (recorded,) = auditor.explain(uri, run=run.place)
    by_id = auditor.explain(uri, run=Path(run.place).name.removeprefix("run="), out="./runs")
    assert bucket.requests == []
    assert by_id == [recorded]
    assert (live.access.verdict, recorded.access.verdict, live.run) == ("exposed", "exposed", None)
    with pytest.raises(UsageError, match="is not in the run"):
        auditor.explain(f"{uri}.none", run=run.place)
    with pytest.raises(UsageError, match="version_id is '7': give a text"):
        auditor.explain(uri, version_id=7)  # type: ignore[arg-type]


WRONG: list[tuple[dict[str, object], str]] = [
    ({"max_rates": 1}, "the keyword 'max_rates' is not a setting: did you mean max_rate?"),
    ({"max_rate": "fast"}, "max_rate is 'fast': give "),
    ({"only": ("O99",)}, "there is no rule 'O99'"),
    ({"hash": True}, "--queue and --hash need a ledger"),
    ({"zzzz": 1}, "the keyword 'zzzz' is not a setting: use accept_cost, "),
    ({"max_age": "90d"}, "the keyword 'max_age' does not apply here: use accept_cost, "),
    ({"algorithm": "md5", "algorithms": "md5"}, "two keywords give the setting algorithms: "),
    ({"out": "s3://my-bucket/runs"}, "is in the audited bucket"),
    ({"config": "no.toml"}, "there is no file 'no.toml'"),
    ({"config": 5}, "config is '5': give a text"),
    ({"resume": 5}, "resume is '5': give a text"),
    ({"start_after": 5}, "start_after is '5': give a text"),
    ({"stop_at": b"x"}, "give a text"),
    ({"jobs": 0}, "jobs 0 is not valid: give a number of processes from 1 to 64"),
    ({"jobs": "2"}, "jobs 2 is not valid"),
    ({"trusted": {"a", 5}}, "give names"),
    ({"out": 5}, "out is '5': give a text"),
]


def test_wrong_arguments_are_one_sentence(bucket: StubServer) -> None:
    for arguments, sentence in WRONG:
        with pytest.raises(UsageError) as caught:
            auditor.audit_bucket("s3://my-bucket", **arguments)  # type: ignore[arg-type]
        assert sentence in str(caught.value)
    for uri in (None, 5, b"s3://my-bucket", "my-bucket"):
        with pytest.raises(UsageError, match="s3://"):
            auditor.audit_bucket(uri)  # type: ignore[arg-type]
    for place in (None, 5, "", "~nobody-here/bucket=b/x", f"\0/bucket=my-bucket/run={RUN}"):
        with pytest.raises(UsageError, match="is not a run folder"):
            auditor.open_run(place)  # type: ignore[arg-type]
    assert not bucket.requests


def test_names_from_any_iterable_and_a_path(bucket: StubServer, tmp_path: Path) -> None:
    run = auditor.audit_bucket("s3://my-bucket", only=(name for name in ("O02",)), out=tmp_path / "runs")
    assert {line.rule for line in run.findings()} == {"O02"}


def test_algorithms_as_one_text(bucket: StubServer) -> None:
    auditor.hash_bucket("s3://my-bucket", ledger="sqlite:one.db")
    found = auditor.verify_bucket("s3://my-bucket", ledger="sqlite:one.db", algorithms="sha256", out="runs")
    assert found.outcomes["match"] == 2
    found = auditor.verify_bucket("s3://my-bucket", ledger="sqlite:one.db", algorithm=["sha256"], out="runs")
    assert found.outcomes["match"] == 2
    with pytest.raises(UsageError, match="algorithms is '5'"):
        auditor.verify_bucket("s3://my-bucket", ledger="sqlite:one.db", algorithms=5)  # type: ignore[arg-type]


def test_a_ledger_that_is_missing_or_not_there(bucket: StubServer) -> None:
    with pytest.raises(UsageError, match="the keyword ledger is missing"):
        auditor.hash_bucket("s3://my-bucket")
    with pytest.raises(UsageError, match=r"no\.db' does not exist"):
        auditor.verify_bucket("s3://my-bucket", ledger="sqlite:no.db")


async def test_the_blocking_form_where_a_loop_runs_already(bucket: StubServer) -> None:
    """As in a notebook: it has the same result, and the same failure."""
    assert auditor.audit_bucket("s3://my-bucket", out="runs").complete
    with pytest.raises(RunError, match="there is no bucket named 'other'"):
        auditor.audit_bucket("s3://other", out="runs")


def test_several_processes_find_what_one_finds(bucket: StubServer) -> None:
    for number in range(30):
        bucket.put("my-bucket", f"more/{number:02}", b"x")
    one, two = (auditor.audit_bucket("s3://my-bucket", out=f"by-{jobs}", jobs=jobs) for jobs in (None, 2))
    assert (one.verdicts, one.coverage) == (two.verdicts, two.coverage)
    assert [line.key for line in one.objects()] == [line.key for line in two.objects()]
    assert (Path(two.place) / "run.json").exists()


def test_several_targets_and_one_that_fails(bucket: StubServer) -> None:
    bucket.world.add("second").put("key", b"x")
    named = ["s3://second", "s3://my-bucket/photos/", "s3://second"]
    seen: list[Snapshot] = []
    runs = auditor.audit_buckets(iter(named), out="runs", progress=seen.append, max_calls=200)
    assert [(run.complete, run.coverage.listed) for run in runs] == [(True, 1), (True, 2)]
    assert {one.what for one in seen} == {"s3://second", "s3://my-bucket/photos/"}
    with pytest.raises(RunError, match=r"^s3://other: there is no bucket named 'other'"):
        auditor.audit_buckets(["s3://other", "s3://second"], out="later")
    (ended,) = Path("later").glob("bucket=*/run=*/summary.json")
    assert "bucket=second" in str(ended)
    with pytest.raises(RunError, match="s3://second was not audited: --max-calls is used up"):
        auditor.audit_buckets(["s3://my-bucket", "s3://second"], out="few", max_calls=14)
    for wrong in ("s3://second", 5, ["second"], [None]):
        with pytest.raises(UsageError, match="s3://"):
            auditor.audit_buckets(wrong, out="runs")  # type: ignore[arg-type]


async def test_stop_and_progress(bucket: StubServer) -> None:
    stop, seen = asyncio.Event(), list[Snapshot]()
    stop.set()
    run = await auditor.audit_bucket_async("s3://my-bucket", out="runs", stop=stop, progress=seen.append)
    assert not run.complete
    assert run.summary is not None
    assert run.summary.resume is not None
    assert run.summary.resume.reason == "stopped by the program"
    assert seen[-1].done
    again = await auditor.audit_bucket_async("s3://my-bucket", out="runs", resume=run.summary.run)
    assert (again.complete, again.place) == (True, run.place)


def test_nothing_of_the_process_is_changed(bucket: StubServer) -> None:
    before = gc.get_threshold(), signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    auditor.audit_bucket("s3://my-bucket", out="runs")
    assert (gc.get_threshold(), signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


def test_facts_that_are_not_given_are_never_private() -> None:
    assert auditor.verdict_of(auditor.BucketFacts(bucket="b")) == "unknown"
    known = auditor.BucketFacts(bucket="b", owner="me", ownership="BucketOwnerEnforced", policy="")
    assert auditor.verdict_of(known) == "private"
    allow = {"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::b/*"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [allow]})
    assert auditor.verdict_of(known, key="a", policy=policy) == "exposed"
