"""The newest botocore knows what S3 has since 2026, and takes the jobs that the auditor writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import botocore.session

from auditor.s3.engines import ENGINES
from tests.cli.test_fix_kit import E03, KEY, WRONG_KEY, Write
from tests.cli.test_fix_kit import audited as audited
from tests.cli.test_fix_kit import write as write
from tests.hashing.batch.test_write_jobs import assert_botocore_takes
from tests.support.engine_names import INSTALLED
from tests.support.servers.stub import StubServer


def members(operation: str) -> Any:
    return botocore.session.get_session().get_service_model("s3").operation_model(operation).output_shape.members


def test_this_is_the_environment_of_the_newest_botocore() -> None:
    assert set(ENGINES) - set(INSTALLED) == {"aioboto3"}
    assert {"ChecksumMD5", "ChecksumXXHASH128", "ObjectLockEventHold"} <= members("HeadObject").keys()
    rule = members("GetBucketEncryption")["ServerSideEncryptionConfiguration"].members["Rules"].member
    assert "BlockedEncryptionTypes" in rule.members


def test_job_that_changes_keys_is_taken(write: Write, stub: StubServer) -> None:
    stub.put("audited", "a", sse="aws:kms", kms_key=WRONG_KEY)
    for key in (KEY, "mrk-1234abcd12ab34cd56ef1234567890ab"):
        write("--semantics", "aws", config=E03.format(key=key))
        assert_botocore_takes(json.loads(Path("kit/key-job.json").read_text()))
        Path("kit").rename(f"kit of {key[:3]}")
