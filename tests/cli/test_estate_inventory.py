"""`--estate` with `--source mixed`: each bucket by its own S3 Inventory, and by calls where it has no usable one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from auditor.cli.main import main
from tests.support.inventory_reports import into_bucket, rows_of, write_report
from tests.support.servers.accounts import OWN, AccountsServer, role_of
from tests.support.servers.world import Odd

ACCOUNT = "111122223333"
FLAGS = ("--source", "mixed", "--only", "O02", "--format", "json", "--keep", "acl=7d,head=7d")


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AccountsServer]:
    """An account with four buckets: with a report, without one, with a configuration that has no report yet, and one
    whose configurations are denied.
    """
    monkeypatch.chdir(tmp_path)
    with AccountsServer() as made:
        made.give(ACCOUNT, "told", "plain", "early", "denied", "reports")
        for name in ("told", "plain", "early", "denied"):
            made.put(name, "old", b"x", acl="public-read" if name == "told" else "private")
            for item in made.world.buckets[name].objects.versions("old"):
                item.last_modified = datetime.now(UTC) - timedelta(days=3)
        for name in ("told", "early"):
            place = {"Bucket": "arn:aws:s3:::reports", "Format": "CSV", "Prefix": "inventory"}
            made.world.buckets[name].inventories = [
                {
                    "Id": "auditor",
                    "IsEnabled": True,
                    "IncludedObjectVersions": "Current",
                    "Destination": {"S3BucketDestination": place},
                    "OptionalFields": ["ObjectAccessControlList"],
                    "Schedule": {"Frequency": "Daily"},
                }
            ]
        told = made.world.buckets["told"]
        created = datetime.now(UTC) - timedelta(days=1)
        write_report(into_bucket(made.world.buckets["reports"]), rows_of(told), bucket="told", created=created)
        made.world.buckets["denied"].odd["ListBucketInventoryConfigurations"] = Odd.DENIED
        yield made


def test_buckets_without_an_inventory_are_audited_by_calls(
    server: AccountsServer, capfd: pytest.CaptureFixture[str]
) -> None:
    """Every bucket is audited, and only the one with a report without a call for its object's ACL."""
    Path("estate.toml").write_text(f'[[accounts]]\nrole = "{role_of(ACCOUNT)}"\n')
    assert main(["audit", "--estate", "estate.toml", "--endpoint-url", server.url, *FLAGS]) == 3
    *lines, found = map(json.loads, capfd.readouterr().out.splitlines())
    assert found["line"] == "5 buckets in 1 account = 5 audited + 0 excluded + 0 holes"
    assert found["verdicts"]["exposed"] == 1
    named = "audited with calls alone, without a usable S3 Inventory: denied, early, plain, reports"
    assert found["notes"] == [named]
    asked = {call.bucket for _, call in server.seen if call.operation == "GetObjectAcl"}
    assert ("told" in asked, {"plain", "early", "denied"} <= asked) == (False, True)
    unseen = {one["target"]["bucket"]: "; ".join(one["not_looked_at"]) for one in lines}
    for name, reason in (
        ("plain", "s3://plain has no usable S3 Inventory"),
        ("early", "s3://reports/inventory/early/auditor has no inventory report"),
        ("denied", "grant s3:GetInventoryConfiguration"),
    ):
        assert "an S3 Inventory of the bucket (" in unseen[name]
        assert reason in unseen[name]
    assert "an S3 Inventory of the bucket (" not in unseen["told"]
    assert {call.operation for call in server.calls_by(OWN)} == {"AssumeRole"}, "the role reads the reports, too"
