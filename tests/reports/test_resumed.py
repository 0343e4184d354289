"""The report of a run that several processes did names what all of them found."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.audit_runs import audit
from tests.support.servers.clients import BUCKET
from tests.support.servers.stub import StubServer
from tests.support.servers.world import StubBucket

OPEN_BY_POLICY = {
    "Version": "2012-10-17",
    "Statement": [
        {"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", "Resource": f"arn:aws:s3:::{BUCKET}/public/*"}
    ],
}


async def test_what_an_earlier_process_found_is_in_the_report(
    stub: StubServer, bucket: StubBucket, tmp_path: Path
) -> None:
    bucket.policy = json.dumps(OPEN_BY_POLICY)
    for number in range(20):
        stub.put(BUCKET, f"plain/{number:02}", b"data")
    stub.put(BUCKET, "denied", b"data", deny={"acl"})
    stub.put(BUCKET, "early", b"data", acl="public-read")
    stub.put(BUCKET, "public/late", b"data")
    first = await audit(stub, tmp_path, max_calls=30)
    assert 2 < first.coverage["listed"] < 20
    assert "public/late" not in (first.folder / "report.html").read_text()

    result = await audit(stub, tmp_path, resume=first.summary["run"])
    assert result.summary["complete"]
    page = (result.folder / "report.html").read_text()
    exposed = page.partition('id="h-open"')[2].partition("</section>")[0]
    findings = page.partition('id="h-find"')[2].partition("</section>")[0]
    assert ">early<" in exposed
    assert ">public/late<" in exposed
    assert ">early<" in findings
    assert ">denied<" in page.partition('id="h-holes"')[2]
    assert {line["verdict"] for line in result.findings if line["key"] == "early"} == {"exposed"}
