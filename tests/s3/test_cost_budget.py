"""--max-cost: a run stops before its S3 calls cost more, and goes on with the next budget."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from auditor.cli.main import main
from auditor.config.layers import Layer, resolve
from auditor.config.settings import Settings
from auditor.errors import UsageError
from auditor.s3.prices import in_dollars, prices_with
from tests.support.audit_runs import Result, audit
from tests.support.servers.clients import BUCKET
from tests.support.servers.stub import StubServer
from tests.support.servers.world import StubBucket

CLASSES = ("STANDARD", "GLACIER_IR", "STANDARD_IA", "STANDARD")
PRICES = prices_with({})


@pytest.fixture(autouse=True)
def _objects(bucket: StubBucket) -> None:
    for number in range(40):
        bucket.put(f"{number:02}", b"x", storage_class=CLASSES[number % len(CLASSES)])


def spent(stub: StubServer) -> float:
    """The price of all calls that the server saw."""
    found = 0
    for call in stub.requests:
        if call.key:
            found += PRICES.of_object_call(CLASSES[int(call.key) % len(CLASSES)])
        elif call.operation != "GetCallerIdentity":
            found += PRICES.list
    return in_dollars(found)


@pytest.mark.parametrize("concurrency", [1, 8])
async def test_slices_never_cost_more_and_end(stub: StubServer, tmp_path: Path, concurrency: int) -> None:
    limit, resume, slices = 0.00018, None, 0
    result: Result | None = None
    while result is None or not result.summary["complete"]:
        stub.forget()
        before = result.coverage["listed"] if result else 0
        result = await audit(stub, tmp_path, max_cost=limit, concurrency=concurrency, resume=resume)
        resume = result.summary["run"]
        assert 0 < spent(stub) <= limit
        assert result.coverage["listed"] > before
        slices += 1
        if not result.summary["complete"]:
            assert result.code == 4
            assert result.summary["resume"]["reason"].startswith("the limit of --max-cost was reached")
    assert slices > 1
    assert (result.coverage["audited"], result.coverage["undecided"]) == (40, 0)


async def test_enough_is_no_limit(stub: StubServer, tmp_path: Path) -> None:
    result = await audit(stub, tmp_path, max_cost=1.0)
    assert (result.summary["complete"], result.coverage["audited"]) == (True, 40)
    dearer = await audit(stub, tmp_path / "dearer", max_cost=1.0, prices={"STANDARD": 100.0})
    assert not dearer.summary["complete"]
    assert 0 < dearer.coverage["listed"] < 20


async def test_too_little_for_one_object_is_refused(stub: StubServer, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--max-cost 7e-05 is too little.* with its listing can cost 0\.0000"):
        await audit(stub, tmp_path, max_cost=0.00007)


def test_the_command_says_how_to_go_on(stub: StubServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fixed = ["--endpoint-url", stub.url, "--out", str(tmp_path), "--concurrency", "1"]
    assert main(["audit", f"s3://{BUCKET}", *fixed, "--max-cost", "0.00018"]) == 4
    told = capsys.readouterr().err
    assert "not complete: the limit of --max-cost was reached" in told
    assert "--max-cost 0.00018" in told
    assert "--resume 2" in told


def test_wrong_amounts(capsys: pytest.CaptureFixture[str]) -> None:
    for text in ("0", "-1", "nan", "inf", "five", "", "0.0000001"):
        assert main(["audit", f"s3://{BUCKET}", f"--max-cost={text}"]) == 2
        assert "--max-cost is" in capsys.readouterr().err


def test_the_reads_of_hashing_are_not_counted() -> None:
    with pytest.raises(UsageError, match="--max-cost does not count the reads of --hash"):
        resolve([layer({"max_cost": "1", "hash": True, "ledger": "sqlite:d.db"})])
    assert resolve([layer({"max_cost": "0.5"})]) == Settings(max_cost=0.5)


def layer(values: dict[str, Any]) -> Any:
    return Layer(values, str)
