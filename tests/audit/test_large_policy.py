"""The progress of an audit says when it judges a large policy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from auditor.aio.stop import Stop
from auditor.audit.run import Audit
from auditor.config.resources import Resources
from auditor.config.settings import Settings
from auditor.model.target import Target
from auditor.runs.stores.local import LocalStore
from tests.support.servers.clients import BUCKET
from tests.support.servers.stub import StubServer
from tests.support.servers.world import StubBucket


def allow(number: int) -> dict[str, Any]:
    limits = {
        "aws:SourceVpce": f"vpce-{number}",
        "aws:SourceVpc": f"vpc-{number}",
        "aws:PrincipalOrgID": f"o-{number}x",
    }
    found = {"Effect": "Allow", "Principal": {"AWS": f"{444455550000 + number}"}, "Action": "s3:GetObject"}
    return {**found, "Resource": f"arn:aws:s3:::{BUCKET}/*", "Condition": {"StringEquals": limits}}


@pytest.mark.parametrize(("statements", "large"), [(2, False), (120, True)])
async def test_progress_names_a_large_policy(
    stub: StubServer, bucket: StubBucket, tmp_path: Path, statements: int, large: bool
) -> None:
    bucket.policy = json.dumps({"Version": "2012-10-17", "Statement": [*map(allow, range(statements))]})
    settings = Settings(endpoint_url=stub.url, out=str(tmp_path), max_rate=None)
    work = Audit(Target(BUCKET), settings, Resources(store=LocalStore(tmp_path)), Stop())
    assert "large policy" not in work.snapshot().words
    summary = await work.run()
    assert (", judging a large policy" in work.snapshot().words) is large
    verdicts = summary.to_dict()["verdicts"]
    assert verdicts["unknown"] == (sum(verdicts.values()) if large else 0)
