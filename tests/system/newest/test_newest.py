"""The newest botocore knows what S3 has since 2026, and takes the jobs that the auditor writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import botocore.session
import pytest

from auditor.errors import UsageError
from auditor.lambdas.event import read_event
from auditor.s3.engines import ENGINES, load
from tests.cli.conftest import Run
from tests.cli.conftest import run as run
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


def test_the_engine_that_is_not_installed_is_refused_with_the_command_that_brings_it(run: Run) -> None:
    code, out, err = run("audit", "s3://audited", "--engine", "aioboto3")
    assert (code, out) == (2, "")
    assert err == (
        "auditor: --engine is aioboto3, whose package is not installed: from the project's folder,"
        " pip install '.[aioboto3]'; in a deployment --param engines=all\n"
    )


def test_a_function_starts_without_it_and_refuses_its_name_in_an_event() -> None:
    load("aioboto3")
    with pytest.raises(UsageError, match=r"event's engine is aioboto3, whose package .* --param engines=all"):
        read_event({"engine": "aioboto3"}, {"AUDITOR_BUCKETS": "audited"})


def test_job_that_changes_keys_is_taken(write: Write, stub: StubServer) -> None:
    stub.put("audited", "a", sse="aws:kms", kms_key=WRONG_KEY)
    for key in (KEY, "mrk-1234abcd12ab34cd56ef1234567890ab"):
        write("--semantics", "aws", config=E03.format(key=key))
        assert_botocore_takes(json.loads(Path("kit/key-job.json").read_text()))
        Path("kit").rename(f"kit of {key[:3]}")
