"""Ask the questions about a bucket by each way that there is: our own engine, and the SDK for the other engines."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from auditor.aws.connection import Connection
from auditor.s3.bucket import BucketSettingsReader, asking, open_reader
from auditor.s3.calls import Caller
from auditor.s3.engines import open_engine

_chosen: list[str] = []


@pytest.fixture(params=["direct", "boto3"])
def asked_by(request: pytest.FixtureRequest) -> Iterator[str]:
    """The engine by which reader_for asks in this test. A module imports it."""
    _chosen.append(request.param)
    yield request.param
    _chosen.pop()


def reader_for(caller: Caller, **fields: Any) -> AbstractAsyncContextManager[BucketSettingsReader]:
    """open_reader for the engine of the present test; fields: of Connection."""
    return open_reader(Connection(**fields), caller, asking(_chosen[-1], open_engine))
