"""The demo as a newcomer runs it, in a process of its own; and its messages when a result is wrong."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from msgspec.structs import replace

from auditor.cli.demo.bucket import BUCKET, choose
from auditor.cli.demo.check import DAMAGED, DemoResults, compare
from auditor.cli.demo.plants import DECOYS, NOT_PLANTED, PLANTED
from auditor.cli.demo.run import run_tour
from auditor.cli.main import main
from auditor.errors import UsageError
from auditor.hashing.worker.counts import Counts
from auditor.model.access import Verdict
from auditor.model.json_codec import encode_line
from auditor.model.line_records import finding_line, object_line, read_line
from auditor.model.run_lines import ObjectLine
from auditor.model.summary import Coverage
from auditor.rules import RULES
from auditor.runs.reading import RunReader
from auditor.runs.stores import open_store
from auditor.text import visible
from tests.support.paths import ROOT
from tests.support.samples.reports import RUN, finding, judged, sample_summary
from tests.verify.test_verify_page import CLEAN

COLUMNS: Final = 80
LONG: Final = ("Report", "Run folder", "Why", "Next")
"""The lines that people copy, which are never cut."""
PAGE: Final = (ROOT / "docs" / "quickstart.md").read_text(encoding="utf-8")
FILES: Final = 3
OBJECTS: Final = FILES + len(DECOYS) + sum(plant.key is not None for plant in PLANTED)
START: Final = (
    "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler);"
    "from auditor.cli.main import main; sys.exit(main(sys.argv[1:]))"
)
"""Ctrl-C works, even where the tests were started by a shell that turns it off for its background jobs."""

HOSTILE: Final = {
    "AWS_PROFILE": "there-is-no-such-profile",
    "AWS_ENDPOINT_URL_S3": "http://127.0.0.1:9",
    "AWS_ENDPOINT_URL_DYNAMODB": "http://127.0.0.1:9",
    "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true",
    "AWS_USE_FIPS_ENDPOINT": "true",
    "AUDITOR_ENGINE": "no such engine",
    "AUDITOR_IGNORE": "O01,O02",
    "HTTP_PROXY": "http://127.0.0.1:9",
    "http_proxy": "http://127.0.0.1:9",
    "NO_PROXY": "example.net",
    "no_proxy": "example.net",
}
"""A user's environment, each variable of which would break the demo or lead it elsewhere."""


@pytest.fixture
def files(tmp_path: Path) -> Path:
    folder = tmp_path / "some files"
    (folder / "below").mkdir(parents=True)
    for number in range(FILES):
        (folder / "below" / f"{number:02} file.txt").write_text(f"file {number}\n")
    return folder


def command(files: Path, out: Path, *more: str) -> list[str]:
    return [sys.executable, "-c", START, "demo", "--from", str(files), "--out", str(out), *more]


def test_a_newcomer_runs_it_in_a_hostile_environment(
    files: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "auditor.toml").write_text("this is no TOML")
    done = subprocess.run(
        command(files, tmp_path / "runs"),
        cwd=tmp_path,
        env={**os.environ, **HOSTILE},
        capture_output=True,
        text=True,
        timeout=120,
    )
    out = done.stdout
    assert (done.returncode, out.count("MISSED")) == (0, 0), out + done.stderr
    said = (
        f"{OBJECTS} listed = {OBJECTS} audited + 0 vanished + 0 undecided: complete",
        f"{len(PLANTED)} of {len(PLANTED)} planted problems found, no false alarm",
        f"{OBJECTS} queued on SQS, read and hashed, digests in DynamoDB",
        f"{OBJECTS} of {OBJECTS} objects hashed,",
        f"{OBJECTS - 1} objects read again: {OBJECTS - len(DAMAGED)} match, ",
        f"{len(DAMAGED)} of {len(DAMAGED)} damaged or lost objects named",
        f"none is planted for {len(NOT_PLANTED)} of {len(RULES)} rules",
    )
    assert [one for one in said if one not in out] == []
    table = out.partition("verdict  object")[2].partition("3 Hash")[0]
    assert len(table.splitlines()) == len(PLANTED) + 2
    assert table in PAGE, f"docs/quickstart.md has to show:\n{table}"
    assert_readable(out, done.stderr)
    folder = re.search(r"^Run folder +(\S+)$", out, re.MULTILINE)
    assert folder is not None
    with open_store(str(tmp_path / "runs")) as store:
        run = RunReader(store, BUCKET, Path(folder[1]).name.removeprefix("run="))
        findings, objects = list(run.findings()), list(run.objects())
    wanted = {(plant.key, rule) for plant in PLANTED for rule in plant.rules}
    assert {(line.key, line.rule) for line in findings} == wanted
    assert {line.key for line in objects} >= {f"files/below/{number:02} file.txt" for number in range(FILES)}
    shown = re.search(r"```text\n(s3://.*?)```", PAGE, re.DOTALL)
    assert shown is not None
    assert main(["explain", *(f"s3://{BUCKET}/{plant.key}" for plant in PLANTED if plant.key), "--run", folder[1]]) == 0
    assert set(shown[1].splitlines()) <= set(capfd.readouterr().out.splitlines())
    assert_kit_opens_nothing(folder[1], tmp_path)


def assert_kit_opens_nothing(run: str, folder: Path) -> None:
    """Each question that the README of the demo's fix kit asks has the answer that lets its reader continue."""
    assert main(["fix-kit", run, "--out", str(folder / "kit")]) == 4  # the demo's AWS tells nothing of one setting
    asked = re.findall(r"^ +auditor (what-if .*)$", (folder / "kit" / "README.md").read_text(encoding="utf-8"), re.M)
    assert [main(shlex.split(line)) for line in asked] == [0, 0, 0]


def assert_readable(out: str, err: str) -> None:
    """Results are on stdout, progress is on stderr, no key does anything to the terminal."""
    assert [line for line in out.splitlines() if len(line) > COLUMNS and not line.startswith(LONG)] == []
    assert all(line.isprintable() for line in (*out.splitlines(), *err.splitlines()))
    assert ("loading: " in err, "loading: " in out) == (True, False)


@pytest.mark.parametrize("moment", ["1 Load", pytest.param("3 Hash", marks=pytest.mark.slow)])
def test_interrupted(moment: str, files: Path, tmp_path: Path) -> None:
    process = subprocess.Popen(
        command(files, tmp_path / "runs"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path
    )
    with process:
        assert process.stdout is not None
        assert any(line.startswith(moment) for line in process.stdout)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)

    assert process.returncode == 4
    assert err.splitlines()[-1].startswith("auditor: the demo was interrupted")
    assert err.count("interrupted") == 1
    assert "Traceback" not in err
    assert "Result" not in out


def line_of(key: str | None, verdict: Verdict | None) -> ObjectLine:
    return read_line(ObjectLine, encode_line(replace(object_line(judged(key or ""), None), verdict=verdict)))


def test_each_missed_problem_and_each_false_alarm_is_told() -> None:
    findings = [finding_line(finding(plant.key, rule)) for plant in PLANTED for rule in plant.rules]
    objects = [line_of(plant.key, plant.verdict) for plant in PLANTED if plant.key is not None]
    objects += [line_of(plant.key, Verdict.PRIVATE) for plant in DECOYS]
    lines = frozenset(("* backups/customers.sql", "* board/minutes.txt", "- deploy/settings.yml"))
    whole = Coverage(listed=5, audited=5, vanished=0, undecided=0, delete_markers=0)
    summary = replace(sample_summary(), complete=True, coverage=whole, rules_undecided=())
    verified = replace(CLEAN, run=RUN, outcomes={**CLEAN.outcomes, "match": 2}, holes=())
    right = DemoResults(5, summary, compare(findings, objects), Counts(hashed=5), verified, lines)
    first, decoy = PLANTED[0].key, DECOYS[-1].key
    odd = [*findings, finding_line(finding(first, "O01")), finding_line(finding(None, "B20"))]
    exposed = replace(objects[-1], verdict=Verdict.EXPOSED)
    told: dict[str, DemoResults] = {
        "": right,
        **{
            f"{'the bucket' if one.key is None else visible(one.key)}: {one.rule} was missed": replace(
                right, comparison=compare([*findings[:at], *findings[at + 1 :]], objects)
            )
            for at, one in enumerate(findings)
        },
        f"the bucket: B20 is a false alarm; {first}: O01 is a false alarm": replace(
            right, comparison=compare(odd, objects)
        ),
        f"{decoy}: verdict exposed is a false alarm": replace(
            right, comparison=compare(findings, [*objects[:-1], exposed])
        ),
        f"{first}: verdict exposed was missed": replace(right, comparison=compare(findings, objects[1:])),
        "the audit has a hole: the listing did not reach its end": replace(
            right, audited=replace(summary, complete=False)
        ),
        "5 objects were loaded and 4 audited": replace(
            right, audited=replace(summary, coverage=replace(whole, listed=4, audited=4))
        ),
        "4 of 5 objects were hashed": replace(right, work=Counts(hashed=4)),
        "the verification has a hole: it did not end; 0 of 2 undamaged objects match": replace(
            right, verified=replace(CLEAN, run=RUN, outcomes={**CLEAN.outcomes, "match": 0}, holes=("it did not end",))
        ),
        "backups/customers.sql: mismatch was missed; the verification says '! =cmd()', a false alarm": replace(
            right, lines=lines - {"* backups/customers.sql"} | {"! =cmd()"}
        ),
    }
    assert [(said, found) for said, one in told.items() if (found := "; ".join(one.differences())) != said] == []


def test_without_moto(files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "moto.server", None)  # as if it was not installed
    before = dict(os.environ)
    with pytest.raises(UsageError, match=r"moto.server is missing.*pip install '\.\[demo\]'"):
        run_tour(str(files), "boto3", str(tmp_path / "runs"))
    assert dict(os.environ) == before


def test_wrong_usage(
    files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("in the way")
    for flags, code, said in (
        (["--from", "there/is/none"], 2, "--from 'there/is/none' is not a directory"),
        (["--from", "empty"], 2, "--from 'empty' holds no files"),
        (["--engine", "steam"], 2, "--engine is 'steam', which is not an engine"),
        (["--out", "s3://bucket/runs"], 2, "--out s3://bucket/runs is not a directory"),
        (["--from", str(files), "--out", "file"], 1, "file"),
    ):
        assert main(["demo", *flags]) == code
        printed = capsys.readouterr()
        assert (printed.out, printed.err.count("\n"), said in printed.err) == ("", 1, True), printed.err


def test_files_whose_names_are_true_findings_stay_out(files: Path) -> None:
    for name in ("a\ttab", "back\\..\\slash", "\u202egpj.exe", "line\nbreak"):
        (files / name).write_text("x")
    (files / "link").symlink_to(files / "nowhere")
    choice = choose(str(files))

    assert list(choice.files) == [f"files/below/{number:02} file.txt" for number in range(FILES)]
    assert choice.left_out


def test_every_rule_is_planted_or_said_not_to_be() -> None:
    planted = {rule for plant in PLANTED for rule in plant.rules}
    assert planted.isdisjoint(NOT_PLANTED)
    assert planted | set(NOT_PLANTED) == {rule.id for rule in RULES}
    keys = [plant.key for plant in (*PLANTED, *DECOYS) if plant.key is not None]
    assert len(set(keys)) == len(keys)
    assert not any(key.startswith("files/") for key in keys)
