"""Odd keys, all the way round, on the stub: every key, on every engine."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest

from auditor.s3.engines import ENGINES
from tests.support.odd_keys import ODD_KEYS
from tests.support.odd_round import go_round
from tests.support.servers.stub import StubServer


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.slow
async def test_every_odd_key_comes_through_unchanged(
    stub: StubServer, moto_url: str, tmp_path: Path, engine: str
) -> None:
    for name, key in ODD_KEYS.items():
        stub.put("audited", key, name.encode(), acl="public-read")
    went = await go_round(stub.url, "audited", moto_url, engine, tmp_path, {})
    went.check({key: sha256(name.encode()).hexdigest() for name, key in ODD_KEYS.items()})
    went.check_page(ODD_KEYS.values())
