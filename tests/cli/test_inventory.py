"""`auditor inventory` prints what sets up an S3 Inventory; `auditor audit --source mixed` takes facts from one."""

from __future__ import annotations

import json
import shlex
from typing import Any, Final

from botocore.session import Session
from botocore.validate import ParamValidator

from auditor.s3.inventory.setup import FIELDS
from tests.cli.conftest import Run
from tests.support.inventory_reports import into_bucket, rows_of, write_report
from tests.support.servers.stub import StubServer
from tests.support.servers.world import Odd

NAMED: Final = ("--inventory", "s3://reports/night/inventory/", "--expected-owner", "111122223333")


def documents(run: Run, *arguments: str) -> dict[str, Any]:
    code, out, _ = run("inventory", *arguments, "--format", "json")
    assert code == 0
    found: dict[str, Any] = json.loads(out)
    return found


def commands_in(text: str) -> list[list[str]]:
    """The command lines that a shell reads in the text."""
    plain = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    return [shlex.split(command) for command in plain.split("\n\n")]


def test_printed_configuration_is_one_that_s3_takes(run: Run) -> None:
    shape = Session().get_service_model("s3").operation_model("PutBucketInventoryConfiguration").input_shape
    for prefix in ("", "a b/'ü%2F/"):
        found = documents(run, f"s3://audited/{prefix}", *NAMED, "--versions")
        configuration = found["configuration"]
        call = {"Bucket": "audited", "Id": found["id"], "InventoryConfiguration": configuration}
        assert not ParamValidator().validate(call, shape).has_errors()
        assert configuration.get("Filter") == ({"Prefix": prefix} if prefix else None)
        assert configuration["IncludedObjectVersions"] == "All"
        assert configuration["Destination"]["S3BucketDestination"]["Prefix"] == "night/inventory"
        (statement,) = found["destination_policy"]["Statement"]
        assert statement["Principal"] == {"Service": "s3.amazonaws.com"}
        assert statement["Resource"] == ["arn:aws:s3:::reports/night/inventory/audited/*"]
        assert statement["Condition"]["StringEquals"]["aws:SourceAccount"] == "111122223333"
        assert statement["Condition"]["ArnLike"] == {"aws:SourceArn": "arn:aws:s3:::audited"}
        assert found["placeholders"] == []
    code, out, err = run("inventory", "s3://audited")
    assert (code, out.count("DESTINATION-BUCKET"), out.count("ACCOUNT-ID"), err.count("\n")) == (0, 3, 1, 1)
    assert "replace DESTINATION-BUCKET and ACCOUNT-ID, or name them with --inventory and --expected-owner" in err


def test_every_field_of_the_api_is_asked_for(run: Run) -> None:
    named = Session().get_service_model("s3").shape_for("InventoryOptionalField").enum
    assert set(named) <= set(FIELDS)
    assert documents(run, "s3://audited")["configuration"]["OptionalFields"] == list(FIELDS)


def test_two_commands_are_printed_for_a_shell(run: Run) -> None:
    code, out, _ = run("inventory", "s3://audited/it's/", *NAMED, "--weekly", "--parquet")
    policy, put = commands_in(out)
    answer = documents(run, "s3://audited/it's/", *NAMED, "--weekly", "--parquet")
    assert code == 0
    assert policy[:5] == ["aws", "s3api", "put-bucket-policy", "--bucket", "reports"]
    assert json.loads(policy[-1]) == answer["destination_policy"]
    assert put[:5] == ["aws", "s3api", "put-bucket-inventory-configuration", "--bucket", "audited"]
    assert json.loads(put[-1]) == answer["configuration"]
    assert answer["configuration"]["Schedule"] == {"Frequency": "Weekly"}
    assert answer["configuration"]["Destination"]["S3BucketDestination"]["Format"] == "Parquet"


def test_mixed_audit_from_the_command_line(run: Run, stub: StubServer) -> None:
    audited, reports = stub.world.add("audited"), stub.world.add("reports")
    for number in range(8):
        audited.put(f"k {number}+%", b"x", acl="public-read")
    write_report(into_bucket(reports), rows_of(audited), bucket="audited", prefix="night")
    mixed = ("--source", "mixed", "--inventory", "s3://reports/night", "--only", "O02")
    code, out, err = run("audit", "s3://audited", "--endpoint-url", stub.url, *mixed, "--format", "json")
    summary = json.loads(out)
    assert (code, summary["rules"], summary["calls"]["acl"]) == (3, {"O02": 8}, 0), err
    stub.world.buckets["reports"].objects.remove("night/audited/auditor/2026-03-04T01-02Z/manifest.checksum")
    code, out, err = run("audit", "s3://audited", "--endpoint-url", stub.url, *mixed)
    assert (code, out) == (1, "")
    assert "has no manifest.checksum beside it, so the report is incomplete: wait for the next report" in err


def test_place_of_the_reports_is_asked_for(run: Run, stub: StubServer) -> None:
    audited, reports = stub.world.add("audited"), stub.world.add("reports")
    audited.put("k", b"x", acl="public-read")
    mixed = ("audit", "s3://audited", "--endpoint-url", stub.url, "--source", "mixed", "--only", "O02")
    code, _, err = run(*mixed)
    assert (code, err.count("\n")) == (2, 1)
    assert "s3://audited has no usable S3 Inventory: `auditor inventory s3://audited` prints one to set up" in err
    audited.inventories = [
        documents(run, "s3://audited/other/", "--inventory", "s3://elsewhere")["configuration"],
        documents(run, "s3://audited", "--inventory", "s3://reports/night")["configuration"],
    ]
    write_report(into_bucket(reports), rows_of(audited), bucket="audited", prefix="night")
    code, out, err = run(*mixed, "--format", "json")
    summary = json.loads(out)
    assert (code, summary["rules"], summary["calls"]["acl"]) == (3, {"O02": 1}, 0), err
    for number in range(250):  # the usable one comes on the third page
        audited.inventories.insert(0, {**audited.inventories[0], "Id": f"other-{number}"})
    code, out, err = run(*mixed, "--format", "json")
    assert (code, json.loads(out)["calls"]["acl"]) == (3, 0), err
    audited.odd["ListBucketInventoryConfigurations"] = Odd.DENIED
    code, _, err = run(*mixed)
    assert (code, err.count("\n")) == (2, 1)
    assert "AccessDenied): grant s3:GetInventoryConfiguration, or name the destination" in err


def test_missing_or_closed_destination_is_one_sentence(run: Run, stub: StubServer) -> None:
    stub.world.add("audited")
    mixed = ("audit", "s3://audited", "--endpoint-url", stub.url, "--source", "mixed", "--inventory", "s3://reports/x")
    code, _, err = run(*mixed)
    assert (code, err.count("\n")) == (1, 1)
    assert "does not exist (NoSuchBucket): check the destination that --inventory names" in err
    stub.world.add("reports").odd["ListObjectsV2"] = Odd.DENIED
    code, _, err = run(*mixed)
    assert (code, err.count("\n")) == (1, 1)
    assert "refuses ListObjectsV2 (AccessDenied): allow s3:GetObject and s3:ListBucket" in err
