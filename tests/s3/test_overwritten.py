"""An object that is overwritten during the audit is judged by the new object, never by the old object's ACL."""

from __future__ import annotations

from pathlib import Path

import pytest

from auditor.s3.engines import ENGINES
from tests.support.audit_runs import audit
from tests.support.servers.stub import StubServer
from tests.support.servers.stub_faults import Plan
from tests.support.servers.world import STRANGER, StubBucket


def overwrites(bucket: StubBucket, before: str, **fields: str) -> Plan:
    """Overwrite the key just before the first call of an operation is answered; fields: of the new object."""

    def plan(operation: str, key: str, nth: int) -> None:
        if operation == before and nth == 1:
            bucket.put(key, b"newer", acl=fields.pop("acl", None), **fields)

    return plan


@pytest.mark.parametrize("engine", ENGINES)
async def test_made_public_between_acl_and_head(
    stub: StubServer, bucket: StubBucket, tmp_path: Path, engine: str
) -> None:
    bucket.put("key", b"old")
    stub.faults = [overwrites(bucket, "HeadObject", acl="public-read")]
    result = await audit(stub, tmp_path, engine=engine)
    line = result.line("key")
    assert (line["changed"], line["outcome"], line["size"]) == (True, "audited", 5)
    assert line["verdict"] == "exposed"
    assert "O02" in line["rules"]
    assert result.summary["calls"]["acl"] == 2


async def test_overwritten_by_another_account_where_no_rule_needs_the_acl(
    stub: StubServer, bucket: StubBucket, tmp_path: Path
) -> None:
    bucket.put("key", b"old")
    stub.faults = [overwrites(bucket, "HeadObject", acl="private", owner=STRANGER)]
    result = await audit(stub, tmp_path, only=("O09", "E01"))
    assert result.line("key")["owner"] == STRANGER
    assert result.line("key")["rules"] == ["O09"]


async def test_new_acl_that_cannot_be_read_leaves_the_object_undecided(
    stub: StubServer, bucket: StubBucket, tmp_path: Path
) -> None:
    bucket.put("key", b"old")

    def plan(operation: str, key: str, nth: int) -> None:
        if operation == "HeadObject" and nth == 1:
            bucket.put(key, b"newer", deny={"acl"})

    stub.faults = [plan]
    result = await audit(stub, tmp_path)
    assert (result.line("key")["verdict"], result.coverage["undecided"]) == ("unknown", 1)
    assert result.code == 4
