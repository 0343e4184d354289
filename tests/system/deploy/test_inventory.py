"""The reports of S3 Inventory: the function reads them where the parameter names them, and its role nothing beside."""

from __future__ import annotations

import json
from typing import Final

import pytest

from auditor.config.layers import environment_layer, resolve
from auditor.lambdas.audit import AuditFunction
from deploy.resolving import Stack
from tests.support.inventory_reports import plain_rows, write_report
from tests.system.deploy.checks.accounts import AUDITED
from tests.system.deploy.checks.packaged import needs_osls, stack_of, statements
from tests.system.deploy.checks.sources import LEVELS, as_list
from tests.system.deploy.test_docs import block
from tests.system.deploy.test_exact_roles import Account, account, around

pytestmark = needs_osls
__all__ = ["account"]
KEY: Final = "arn:aws:kms:us-east-1:123456789012:key/0a1b2c3d-0000-4000-8000-000000000000"
PLACE: Final = "s3://inventories/all/night"


def settings(stack: Stack) -> tuple[str, str | None]:
    function = stack.resources()["AuditLambdaFunction"]["Properties"]
    found = resolve([environment_layer(function["Environment"]["Variables"])])
    return found.source, found.inventory


@pytest.mark.parametrize("level", LEVELS)
def test_reports_are_listed_below_their_prefix_alone(level: str) -> None:
    plain, stack = stack_of(level), stack_of(level, f"inventory={PLACE}/")
    assert settings(plain) == ("live", None)
    assert "Inventory" not in json.dumps(plain.resources())
    assert settings(stack) == ("mixed", f"{PLACE}/")
    function, role = stack.resources()["AuditLambdaFunction"]["Properties"], statements(stack.resources(), "AuditRole")
    assert (function["MemorySize"] >= 512, function["Layers"]) == (True, []), "DuckDB is an option"
    listing = role["InventoryList"]
    assert (listing["Action"], listing["Resource"]) == ("s3:ListBucket", "arn:aws:s3:::inventories")
    assert listing["Condition"] == {"StringLike": {"s3:prefix": "all/night/*"}}
    assert "InventoryKey" not in role


def test_at_exposure_the_destination_lets_the_role_read_and_the_role_does_not_forbid_it() -> None:
    stack = stack_of("exposure", f"inventory={PLACE}", f"inventoryKey={KEY}")
    found = statements(stack.resources(), "AuditRole")
    assert {"Inventory", "InventoryKey"}.isdisjoint(found)
    assert "arn:aws:s3:::inventories/all/night/*" in as_list(found["NoContents"]["NotResource"])
    assert as_list(found["NoDecryption"]["NotResource"]) == [KEY]
    written = block("S3AuditorInventory")
    assert (written["Effect"], written["Action"]) == ("Allow", "s3:GetObject")


def test_a_whole_bucket_of_reports_is_listed_without_a_condition() -> None:
    found = statements(stack_of("metadata", "inventory=s3://inventories").resources(), "AuditRole")
    assert "Condition" not in found["InventoryList"]
    assert found["Inventory"]["Resource"] == "arn:aws:s3:::inventories/*"


@pytest.mark.parametrize("account", [f"{level} inventory={PLACE}" for level in LEVELS[1:]], indirect=True)
async def test_the_role_allows_what_reading_a_report_asks_for(account: Account) -> None:
    s3 = account.client("s3")
    s3.create_bucket(Bucket="inventories")

    def put(key: str, data: bytes) -> None:
        s3.put_object(Bucket="inventories", Key=key, Body=data)

    write_report(put, plain_rows(AUDITED, ("a", "b")), bucket=AUDITED, prefix="all/night")
    account.recording.forget()
    (run,) = (await AuditFunction(account.variables("AuditLambdaFunction")).handle({}, around()))["runs"]
    assert run["complete"]
    assert any("S3 Inventory report s3://inventories/all/night/" in one for one in run["not_looked_at"])
    asked = {call for call in account.recording.asked_for if call[0] == "inventories"}
    assert asked == {call for call in account.allowed("AuditRole") if call[0] == "inventories"}
    assert asked == {("inventories", "s3:ListBucket"), ("inventories", "s3:GetObject")}
    assert account.refused("AuditRole") == set()
    assert not {call for call in account.recording.asked_for if "InventoryConfiguration" in call[1]}
