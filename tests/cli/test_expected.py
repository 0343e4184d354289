"""The command line as people expect it: help, suggestions, quiet, verbose."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from auditor.cli.main import main
from auditor.cli.output import ours_or_warning, talk
from auditor.cli.progress import Progress, make_progress
from tests.support.servers.stub import StubServer


def test_alone_it_shows_the_help_and_is_no_success(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    printed = capsys.readouterr()
    assert printed.out.startswith("usage: auditor")
    assert printed.err == ""


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["audti", "s3://bucket"], "audit"),
        (["audit", "s3://bucket", "--max-rates", "5"], "--max-rate"),
        (["audit", "s3://bucket", "--fromat=json"], "--format"),
        (["audit", "s3://bucket", "--format", "jsno"], "json"),
        (["digests", "exprot", "s3://bucket"], "export"),
    ],
)
def test_what_was_meant_is_named(arguments: list[str], meant: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert capsys.readouterr().err.endswith(f": did you mean {meant}?\n")


def test_nothing_alike_is_suggested_for_nonsense(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["audit", "s3://bucket", "--zzzzzz"])
    assert "did you mean" not in capsys.readouterr().err


def test_a_star_in_a_bucket_name_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "s3://photos-*"]) == 2
    assert "has a `*`, and no bucket name has one" in capsys.readouterr().err


def test_a_star_in_a_prefix_is_explained_where_nothing_is_listed_and_quiet_leaves_the_rest_out(
    stub: StubServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    stub.put("audited", "photos/a", b"x")
    given = ["--endpoint-url", stub.url, "--ignore", "B01,B02", "--out", str(tmp_path)]
    assert main(["audit", "s3://audited/photos/*", *given, "-q"]) == 4
    (line,) = capfd.readouterr().err.splitlines()
    assert line.endswith("write the whole prefix, s3://audited/photos/")


@pytest.mark.parametrize(("quiet", "progress"), [(True, True), (False, False)])
def test_no_progress(quiet: bool, progress: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(talk, "quiet", quiet)
    monkeypatch.setattr(talk, "progress", progress)
    assert type(make_progress()) is Progress


@pytest.mark.parametrize(
    ("name", "level", "shown"),
    [
        ("auditor.s3.calls", logging.DEBUG, True),
        ("botocore.endpoint", logging.INFO, False),
        ("botocore.endpoint", logging.WARNING, True),
        ("auditorium", logging.INFO, False),
    ],
)
def test_verbose_is_about_our_own_steps(name: str, level: int, shown: bool) -> None:
    assert ours_or_warning(logging.LogRecord(name, level, "", 0, "", None, None)) is shown
