"""Every door gives the same answer: an audit says of each kind of object what `KINDS` says, whoever starts it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

import auditor
from auditor.cli.main import main
from auditor.lambdas.audit import AuditFunction
from auditor.lambdas.invocation_frame import FunctionContext
from auditor.s3.engines import ENGINES
from tests.support.audit_runs import check, read_back
from tests.support.servers.clients import BUCKET
from tests.support.servers.samples import KINDS, sample_bucket, sample_key, sample_kind
from tests.support.servers.stub import StubServer

COUNT: Final = 100
EXPECTED: Final = {
    sample_key(number): (kind.verdict, kind.rules, kind.unread)
    for number in range(COUNT)
    for kind in (KINDS[sample_kind(number)],)
}
Door = Callable[[StubServer, Path], None]
"""It audits the stub's bucket, and leaves the run folder below a directory."""


def command(*flags: str) -> Door:
    """`auditor audit s3://audited` with these flags ends with exit code 4, because some facts cannot be read."""

    def door(stub: StubServer, out: Path) -> None:
        given = ("audit", f"s3://{BUCKET}", "--endpoint-url", stub.url, "--out", str(out), *flags)
        assert main(given) == 4

    return door


def stopped_and_resumed(stub: StubServer, out: Path) -> None:
    """Stopped by its limit of calls, and resumed without it."""
    command("--max-calls", "90")(stub, out)
    (run,) = out.glob("bucket=*/run=*")
    assert not json.loads((run / "summary.json").read_text())["complete"]
    command("--resume", str(run))(stub, out)


def next_night(stub: StubServer, out: Path) -> None:
    """The second of two nights takes what it can from the first."""
    keep = ("--keep", "acl=30d,head=30d")
    command(*keep)(stub, out)
    stub.forget()
    command(*keep)(stub, out)
    assert stub.count("GetObjectAcl") < COUNT / 2


def library(stub: StubServer, out: Path) -> None:
    auditor.audit_bucket(f"s3://{BUCKET}", endpoint_url=stub.url, out=str(out))


def function(stub: StubServer, out: Path) -> None:
    """The nightly function gets its schedule's event."""
    environ = {"AUDITOR_BUCKETS": BUCKET, "AUDITOR_ENDPOINT_URL": stub.url, "AUDITOR_OUT": str(out)}
    answer = asyncio.run(AuditFunction(environ).handle({}, FunctionContext(seconds_left=900.0)))
    assert [run["complete"] for run in answer["runs"]] == [True]


DOORS: Final[dict[str, Door]] = {
    **{f"command with {engine}": command("--engine", engine) for engine in ENGINES},
    "command with two processes": command("--jobs", "2"),
    "command that is stopped and resumed": stopped_and_resumed,
    "command of the next night": next_night,
    "library": library,
    "function": function,
}


@pytest.mark.parametrize("door", DOORS)
def test_says_of_each_kind_what_is_known_of_it(stub: StubServer, tmp_path: Path, door: str) -> None:
    stub.world.buckets[BUCKET] = sample_bucket(COUNT)
    DOORS[door](stub, tmp_path)
    latest = json.loads((tmp_path / f"bucket={BUCKET}" / "latest.json").read_text())["runs"]["current"][""]
    run = tmp_path / f"bucket={BUCKET}" / f"run={latest}"
    result = check(read_back(json.loads((run / "summary.json").read_text())))
    unread = {line["key"]: line["unread"] for line in result.undecided}
    found = {
        line["key"]: (
            line["verdict"],
            tuple(rule for rule in line["rules"] if rule != "K01"),  # of odd keys, whatever kind the object is
            next(((fact["action"], fact["code"]) for fact in unread.get(line["key"], ())), None),
        )
        for line in result.objects
    }
    different = {key: (found.get(key), said) for key, said in EXPECTED.items() if found.get(key) != said}
    assert different == {}
    assert found.keys() == EXPECTED.keys()
