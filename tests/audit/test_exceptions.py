"""Exceptions in a whole audit: a public website ends with 0, counts survive a resume, and expired ones count again."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import auditor
from auditor.errors import RunChanged
from auditor.model.access import Verdict
from auditor.model.exception import ExceptionEntry
from auditor.model.finding import FailOn, Severity
from auditor.model.summary import Summary
from auditor.offline.diff import Diff
from auditor.reports.summary import exit_code
from tests.offline.test_rejudge import judged_again
from tests.support.audit_runs import Result, audit
from tests.support.servers.clients import BUCKET
from tests.support.servers.stub import StubServer

SITE = ExceptionEntry(
    "a public website", prefix="site/", verdict=Verdict.EXPOSED, audience="anyone", owner="web", until="2999-12-31"
)
OTHERS = tuple(
    ExceptionEntry("the bucket of a website", rule=rule, owner="web", until="2999-12-31") for rule in ("B02", "B03")
)


def website(stub: StubServer, *more: str) -> None:
    for key in ("site/a.html", "site/b.html", "site/c.html", *more):
        stub.put(BUCKET, key, b"data", acl="public-read")
    stub.put(BUCKET, "private/x", b"data")


async def run(stub: StubServer, out: Path, *entries: ExceptionEntry, **more: Any) -> Result:
    return await audit(stub, out, only=("O02", "B02", "B03"), exceptions=entries, **more)


async def test_public_website_ends_with_exit_code_0_and_is_shown(stub: StubServer, tmp_path: Path) -> None:
    website(stub)
    assert (await run(stub, tmp_path)).code == 3
    result = await run(stub, tmp_path, SITE, *OTHERS)
    summary = result.summary
    assert result.code == 0
    assert summary["verdicts"]["exposed"] == summary["excepted"]["verdicts"]["exposed"] == 3
    assert summary["findings"]["high"] == summary["excepted"]["findings"]["high"] >= 3
    told = {"id": SITE.name, "reason": "a public website", "owner": "web", "state": "active", "matched": 3}
    assert told.items() <= summary["exceptions"][0].items()
    assert {line["exception"] for line in result.objects if line["verdict"] == "exposed"} == {SITE.name}
    assert {line["exception"] for line in result.findings if line["rule"] == "O02"} == {SITE.name}
    assert result.line("private/x")["exception"] is None


async def test_changes_at_the_end_are_those_that_diff_tells(stub: StubServer, tmp_path: Path) -> None:
    website(stub)
    nights: Sequence[tuple[tuple[ExceptionEntry, ...], dict[str, dict[str, int]], int]] = (
        ((), {}, 0),
        ((SITE, *OTHERS), {"exposed": {"excepted": 3}}, 0),
        ((SITE, *OTHERS), {}, 0),  # as in the night before
        (OTHERS, {"exposed": {"uncovered": 3}}, 3),
        ((SITE, *OTHERS), {"exposed": {"excepted": 4}}, 0),  # with a new object, which the exception covers
    )
    last = await run(stub, tmp_path)
    for number, (entries, verdicts, code) in enumerate(nights):
        if number == len(nights) - 1:
            stub.put(BUCKET, "site/new.html", b"data", acl="public-read")
        result = await run(stub, tmp_path, *entries)
        summary = Summary.from_dict(result.summary)
        assert summary.changes.verdicts == verdicts, number
        assert exit_code(summary, FailOn(Severity.HIGH, new=True)) == code, number
        compared = Diff(auditor.open_run(last.folder), auditor.open_run(result.folder))
        assert len(list(compared.changes())) == sum(summary.changes.classes.values()), number
        assert compared.counts == summary.changes, number
        last = result


async def test_expired_exception_counts_again_on_the_day_of_the_run(stub: StubServer, tmp_path: Path) -> None:
    website(stub, "sites/secret")
    result = await run(stub, tmp_path, SITE, *OTHERS)
    assert (result.code, result.line("sites/secret")["exception"]) == (3, None)
    assert (result.summary["verdicts"]["exposed"], result.summary["excepted"]["verdicts"]["exposed"]) == (4, 3)
    result = await run(stub, tmp_path, replace(SITE, until="2020-01-01"), *OTHERS)
    assert result.code == 3
    assert sum(result.summary["excepted"]["verdicts"].values()) == 0
    state = result.summary["exceptions"][0]
    assert (state["state"], state["matched"]) == ("expired", 3)


async def test_unread_object_stays_a_hole_behind_an_exception_for_its_verdict(stub: StubServer, tmp_path: Path) -> None:
    website(stub)
    stub.put(BUCKET, "site/d.html", b"data").deny = {"acl"}
    result = await run(stub, tmp_path, SITE, *OTHERS)
    assert result.code == 4
    assert result.summary["excepted"]["undecided"] == 0
    hole = ExceptionEntry("denied", prefix="site/", code="AccessDenied", owner="w", until="2999-12-31")
    accepted = await run(stub, tmp_path, SITE, *OTHERS, hole)
    assert (accepted.code, accepted.summary["excepted"]["undecided"]) == (0, 1)
    assert accepted.coverage["undecided"] == accepted.summary["accepted"]["undecided"] == 1


async def test_counts_survive_a_resume(stub: StubServer, tmp_path: Path) -> None:
    website(stub, *(f"site/{number:03}" for number in range(60)))
    whole = await run(stub, tmp_path / "whole", SITE, *OTHERS)
    first = await run(stub, tmp_path / "cut", SITE, *OTHERS, max_calls=50, part_lines=5)
    assert not first.summary["complete"]
    for entries in ((), OTHERS, (replace(SITE, until="2020-01-01"), *OTHERS)):
        with pytest.raises(RunChanged, match="exceptions"):
            await run(stub, tmp_path / "cut", *entries, resume=first.summary["run"])
    rest = await run(stub, tmp_path / "cut", SITE, *OTHERS, resume=first.summary["run"], part_lines=5)
    for name in ("excepted", "exceptions", "verdicts", "findings"):
        assert rest.summary[name] == whole.summary[name]
    assert rest.code == 0


def test_judged_again_with_and_without_the_exceptions(stub: StubServer, tmp_path: Path) -> None:
    website(stub)
    soon = tuple(replace(entry, until="2027-01-31") for entry in (SITE, *OTHERS))
    result = asyncio.run(run(stub, tmp_path, *soon))
    again = judged_again(result)
    assert (again.summary["excepted"], again.summary["exceptions"], again.code) == (
        result.summary["excepted"],
        result.summary["exceptions"],
        result.code,
    )
    plain = tmp_path / "plain.toml"
    plain.write_text("only = ['O02', 'B02', 'B03']\n", encoding="utf-8")
    bare = judged_again(result, "--config", str(plain))
    assert (bare.code, bare.summary["exceptions"]) == (3, [])
    assert {line["exception"] for line in bare.objects + bare.findings} == {None}
